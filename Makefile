# make run     the agent in the foreground, on a copy of config/ in .run/; Ctrl-C ends it
# make test    the linters, the types and every test
# make lint    the linters and the types
# make bench   measurements, beside cron and APScheduler
# make clean   removes what the others made, except .run/, which may hold your edits
#
# Needs Python 3.11 or newer; the rest goes into .venv/. PYTHON=/path/to/python names another interpreter.

.PHONY: help run test lint bench clean
.SILENT:
MAKEFLAGS += --no-print-directory

help:
	sed -n 's/^# //; /^make/p' Makefile

run:
	sh .ci/environment
	umask 077; mkdir -p .run/config .run/state
	for file in config/*; do [ -e ".run/$$file" ] || cp "$$file" .run/config/; done
	echo "Routines: .run/config/routines.yaml, read again when you save it. State: .run/state. Ctrl-C ends." >&2
	ANKITA_CONFIG_DIR="$$PWD/.run/config" ANKITA_STATE_DIR="$$PWD/.run/state" exec .venv/bin/ankita-agent run

test: lint
	[ "$$(id -u)" != 0 ] || sh .ci/debian-packages bindfs fuse3 || echo "Tests that need them are skipped." >&2
	.venv/bin/python -m pytest

lint:
	sh .ci/environment dev
	.venv/bin/python -m ruff check
	.venv/bin/python -m ruff format --check
	.venv/bin/python -m mypy

bench:
	sh .ci/environment dev,bench
	[ "$$(id -u)" != 0 ] || sh .ci/debian-packages cron || echo "cron is left out." >&2
	.venv/bin/python -m tests.bench

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find agent tests -name __pycache__ -type d -prune -exec rm -rf {} +
