"""Texts of routines.yaml that tests share: good ones, and bad ones with what a reader must be told."""

from typing import Final

from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import Routine
from ankita_agent.core.routine_file import Judgement, judge

DESIGN: Final = """\
# yaml-language-server: $schema=…/routines.schema.json
agent:    {concurrency: 4, settle: 30s, stop_drain: 20s}
defaults: {timezone: Europe/Berlin, timeout: 3m}
routines:
  morning-briefing:
    schedule: weekdays 08:00
    run: ~/bin/briefing            # a string goes to /bin/sh -c, a list is an argv
    grace: 2h
"""

EVERYTHING: Final = """\
agent:
  concurrency: 2
  settle: 1m
  stop_drain: 5s
defaults:
  timezone: UTC
  env: {LANG: C, EDITOR: ed}
routines:
  all.of-it_1:
    description: every key there is
    schedule: "*/5 8-18 * * mon-fri"
    run: [/usr/bin/env, printf, '%s', 5]
    cwd: ~/projects
    env:
      DEBUG: no
      MODE: 0755
      EMPTY:
      LANG: de_DE.UTF-8
    env_file: ~/.config/secrets.env
    shell: /bin/bash
    timezone: America/New_York
    enabled: yes
    timeout: none
    kill_after: 30s
    grace: 10m
    catch_up: none
    overlap: skip
    jitter: 1m30s
    success_exit_status: [0, 3]
    quiet_output: nothing to report
    rerun_lost: on
    leave_running: off
    stale_after: 2d
    keep_logs: 7
"""

GOOD: Final = (
    "",
    "# nothing but a comment\n",
    "---\n...\n",
    "routines:\n",
    "routines: {}\n",
    "agent:\ndefaults:\nroutines:\n",
    DESIGN,
    EVERYTHING,
    'routines:\n  a: {schedule: "@daily", run: echo hello}\n',
    "routines:\n  a:\n    schedule: every 90s\n    run: |\n      set -e\n      echo a: b # c\n",
    "routines:\n  a: &a\n    schedule: daily 08:00\n    run: date\n  b: *a\n",
    "routines:\r\n  a:\r\n    schedule: daily 08:00\r\n    run: date\r\n",
    "routines:\n  a:\n    schedule: '@reboot'\n    run: echo äöü 🎉\n    cwd: ~\n",
)

BAD: Final = (
    "hello",
    "- a\n",
    "routine: {}\n",
    "agent: {concurrency: 0}\n",
    "agent: {settle: 30}\n",
    "defaults: {timeout: 5}\n",
    "defaults: {schedule: daily 08:00}\n",
    "routines: [1]\n",
    "routines:\n  a:\n",
    "routines:\n  a:\n    run: date\n",
    "routines:\n  a:\n    schedule: daily 08:00\n",
    "routines:\n  a b: {schedule: daily 08:00, run: date}\n",
    "routines:\n  ../a: {schedule: daily 08:00, run: date}\n",
    "routines:\n  a: {schedule: daily 08:00, run: ''}\n",
    "routines:\n  a: {schedule: daily 08:00, run: []}\n",
    "routines:\n  a: {schedule: daily 08:00, run: {a: b}}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, runn: date}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, lease: x}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, overlap: queue}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, catch_up: all}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, timeout: 5 minutes}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, enabled: perhaps}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, keep_logs: many}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, success_exit_status: 300}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, env: [A=b]}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, env: {1A: b}}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, env: {ANKITA_SLOT: b}}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, shell: bash -eu}\n",
)
"""Each is refused, and a JSON schema can see why."""

BAD_BEYOND_A_SCHEMA: Final = (
    "routines:\n  a: {schedule: sometimes, run: date}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, timezone: Europe/Berln}\n",
    "routines:\n  a: {schedule: every 1m, run: date, jitter: 5m}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date, kill_after: 1h}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date}\n  A: {schedule: daily 08:00, run: date}\n",
    "routines:\n  a: {schedule: daily 08:00, run: date}\n  a: {schedule: daily 08:00, run: date}\n",
    "routines:\n  a: {schedule: daily 08:00, run: [~/bin/x]}\n",
)

UNREADABLE: Final = (
    b"routines:\n  a:\n    run: caf\xe9\n",
    b"\x00\x01\x02",
    b"\xff\xfer\x00o\x00",
    b"a: \x1b[31m\n",
    b"a: &a [*a]\n",
    b"[" * 100,
    b"a: b\n---\na: b\n",
    b"{a: b, ? [c] : d}\n",
)
"""Each is refused before it is judged."""


def judged(text: str | bytes, local_zone: str = "UTC") -> Judgement:
    """What the whole way from bytes to routines says."""
    content = text.encode() if isinstance(text, str) else text
    return judge(read_document(content), local_zone)


def in_routine(*lines: str, schedule: str = "schedule: daily 08:00", run: str = "run: date") -> str:
    """A file with one routine `a`: line 3 is its schedule, 4 its run, and 5 the first of `lines`."""
    return "routines:\n  a:\n" + "".join(f"    {line}\n" for line in (schedule, run, *lines))


def the_routine(text: str) -> Routine:
    """The only routine of a good file."""
    judgement = judged(text)
    assert judgement.file is not None, judgement.problems
    (routine,) = judgement.file.routines
    return routine


def the_problem(text: str | bytes) -> Problem:
    """The only problem of a file."""
    (problem,) = judged(text).problems
    return problem
