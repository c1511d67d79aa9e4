# make run     the agent in the foreground, on a copy of config/ in .run/; Ctrl-C ends it
# make test    the linters, the types and every test
# make test-systemd-all   the tests with a real systemd once more, on other releases of it; needs root and a Debian mirror
# make lint    the linters and the types
# make bench   measurements, beside cron and APScheduler
# make explore every order of what agents do to each other, in larger worlds than make test does; some minutes
# make clean   removes what the others made, except .run/, which may hold your edits
#
# Needs Python 3.11 or newer; the rest goes into .venv/. PYTHON=/path/to/python names another interpreter.

.PHONY: help run test test-systemd-all lint bench explore clean
.SILENT:
MAKEFLAGS += --no-print-directory

# What the tests with a real systemd take: to boot one, to run the program there as an ordinary user, and to build pystemd.
RIG = systemd-container dbus dbus-user-session libpam-systemd polkitd procps python3-venv python3-dev libsystemd-dev pkg-config gcc libc6-dev
# The same in another release: without compiler, with the pystemd of that release.
TREE = systemd-sysv dbus dbus-user-session libpam-systemd procps

help:
	sed -n 's/^# //; /^make/p' Makefile

run:
	sh .ci/environment
	umask 077; mkdir -p .run/config .run/state
	for file in config/*; do [ -e ".run/$$file" ] || cp "$$file" .run/config/; done
	cp .ci/ankita-agent .run/ankita-agent; chmod 700 .run/ankita-agent
	echo "Routines: .run/config/routines.yaml, read again when you save it. Ctrl-C ends." >&2
	echo "From another terminal: .run/ankita-agent status   (or list, history, check, trigger heartbeat, ...)" >&2
	exec .run/ankita-agent run

# A fault of style does not keep the tests from running; it fails the whole all the same.
test:
	sh .ci/environment dev
	[ "$$(id -u)" != 0 ] || sh .ci/debian-packages bindfs fuse3 $(RIG) || echo "Tests that need them are skipped." >&2
	failed=0; $(MAKE) lint || failed=1; .venv/bin/python -m pytest || failed=1; exit $$failed

# Debian 13 has systemd 257. The program does not run on Debian 11, with systemd 247, but its units are checked there.
test-systemd-all:
	sh .ci/environment dev
	sh .ci/debian-packages mmdebstrap $(RIG)
	sh .ci/tree trixie $(TREE) systemd-container polkitd python3-venv python3-pystemd
	sh .ci/tree bullseye $(TREE)
	ANKITA_REQUIRE=root,systemd .venv/bin/python -m pytest --systemd-tree .trees/trixie tests/systemd tests/contract/test_service_manager_contract.py
	ANKITA_REQUIRE=root,systemd .venv/bin/python -m pytest --systemd-tree .trees/bullseye tests/systemd/test_unit_files.py

lint:
	sh .ci/environment dev
	failed=0; \
	.venv/bin/python -m ruff check || failed=1; \
	.venv/bin/python -m ruff format --check || failed=1; \
	.venv/bin/python -m mypy || failed=1; \
	exit $$failed

bench:
	sh .ci/environment dev,bench
	[ "$$(id -u)" != 0 ] || sh .ci/debian-packages cron || echo "cron is left out." >&2
	.venv/bin/python -m tests.bench

explore:
	sh .ci/environment dev
	.venv/bin/python -m pytest -m explore tests/explorer

clean:
	rm -rf .trees .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find agent tests -name __pycache__ -type d -prune -exec rm -rf {} +
