"""The costs inside: the agent's own objects on real files, in this process, one question after another."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from ankita_agent.adapters.attempt_outputs import AttemptOutputs
from ankita_agent.adapters.linux_wakeups import LinuxWakeups
from ankita_agent.adapters.posix_env_files import PosixEnvFiles
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.posix_processes import PosixProcesses
from ankita_agent.adapters.routine_files import LastGoodFile
from ankita_agent.adapters.sd_notify import SdNotify
from ankita_agent.adapters.sqlite_ledger import open_owner
from ankita_agent.adapters.state_directory import prepare_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.adapters.yaml_files import LARGEST
from ankita_agent.app.book import Book
from ankita_agent.app.claim import Card
from ankita_agent.app.desk import Desk
from ankita_agent.app.dues import Dues
from ankita_agent.app.owner import Owner
from ankita_agent.app.patience import Patience, patient_ledger
from ankita_agent.app.places import Places
from ankita_agent.app.reporter import Reporter
from ankita_agent.app.requests import Requests
from ankita_agent.app.routines import Routines
from ankita_agent.app.runner import Runner, Surroundings
from ankita_agent.app.seat import Opened, plan_of
from ankita_agent.app.shift import Shift
from ankita_agent.app.timekeeping import Timekeeper
from ankita_agent.app.told import Lines
from ankita_agent.app.world import Manner, World
from ankita_agent.core.instants import DAY, SECOND, Duration, Instant, format_instant
from ankita_agent.core.outcomes import Trigger
from ankita_agent.core.passes import Plan
from ankita_agent.core.routine import in_force
from ankita_agent.core.rows import Claim, ProcessId
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named
from ankita_agent.ports.ledger import Ledger
from ankita_agent.ports.wakeups import Happened
from ankita_agent.wiring.routines import routine_judge, routine_source
from ankita_agent.wiring.user import find_this_user
from tests.bench.measured import Sample, Sheet
from tests.bench.mix import SCHEDULES, ZONES, sleeping_file

MANY: Final = 10_000
OFTEN: Final = 2_000
TERM: Final = 1
NOW: Final = Instant(1_800_000_000 * SECOND)


def next_slot(directory: Path, sheet: Sheet) -> None:
    """The next slot of one routine, over many schedules, zones and instants; each timed by itself."""
    sheet.begin("next slot of one routine")
    instants = [Instant(NOW + number * 37 * DAY + number * 1_234 * SECOND) for number in range(10)]
    tables = [Timetable(parse_schedule(text), zone_named(zone)) for text, zone in product(SCHEDULES, ZONES)]
    for instant, table in product(instants, tables):
        table.next_after(instant)  # a zone keeps the years that it was asked for
    warm = Sample(
        "next slot",
        "us",
        tuple(
            _once(lambda table=table, at=instant: table.next_after(at))  # type: ignore[misc]
            for instant, table in product(instants, tables)
        ),
    )
    print(warm.short())
    sheet.figure(
        f"5 next slot, {len(tables)} schedules and zones",
        "median <= 100 us",
        warm.short(),
        passed=warm.median <= 100,
    )


def passes(directory: Path, sheet: Sheet) -> None:
    """10 000 routines of which none is due: what loading and what one pass over them take."""
    sheet.begin(f"inside, {MANY} routines of which none is due")
    content = sleeping_file(MANY).encode()
    with _office(directory, content) as office:
        serving = _many("Desk.serve", lambda: office.desk.serve("", look_for_requests=False))
        checking = _many("Owner.check", office.owner.check)
        pinging = _many("Shift.show_progress, with a manager's socket", office.shift.show_progress)
        working = _many("Shift.work, a whole pass", lambda: office.shift.work(Happened()))
    sheet.figure(
        f"5 pass over {MANY}, none due (Desk.serve)",
        "median <= 50 us",
        serving.short(),
        passed=serving.median <= 50,
    )
    for sample in (working, checking, pinging):
        sheet.beside(sample.what, sample)
    for sample in (serving, working, checking, pinging):
        print(f"{sample.what}: {sample.short()}")


def parts_of_load(directory: Path, sheet: Sheet) -> None:
    """Where the time of loading 10 000 routines goes."""
    sheet.begin(f"parts of loading {MANY} routines")
    content = sleeping_file(MANY).encode()
    judge = routine_judge()
    judged = []
    reading = Sample("read and judge the file", "ms", (_once(lambda: judged.append(judge(content))) / 1000,))
    file = judged[0].file
    assert file is not None
    plans: list[Plan] = []
    planning = _once(lambda: plans.extend(plan_of(routine, "a machine") for routine in file.routines)) / 1000
    ledger, term = _ledger(directory / "parts.db")
    wanted = [in_force(routine) for routine in file.routines]
    putting = _once(lambda: ledger.put_in_force(term, wanted, NOW, "boot")) / 1000
    marks = {name: account.accounted_until for name, account in ledger.accounts().items()}
    dues = _once(lambda: Dues().put(plans, marks)) / 1000
    ledger.close()
    for sample in (
        reading,
        Sample("make plans", "ms", (planning,)),
        Sample("ledger.put_in_force", "ms", (putting,)),
        Sample("dues.put: the next slot of each", "ms", (dues,)),
    ):
        sheet.raw(sample)
        sheet.beside(f"{sample.what}, {MANY} routines", f"{sample.median:.0f} ms")


def claims(directory: Path, sheet: Sheet) -> None:
    """What it takes until claims are on the disk, one and 200 in a transaction."""
    sheet.begin("claims, durable when the call returns")
    ledger, term = _ledger(directory / "claims.db")
    file = routine_judge()(sleeping_file(200).encode()).file
    assert file is not None
    ledger.put_in_force(term, [in_force(routine) for routine in file.routines], NOW, "boot")
    for count in (1, 200):
        samples = []
        for number in range(1, 41):
            slot = Instant(NOW + (count + number) * 1000 * SECOND)
            names = [routine.name for routine in file.routines[:count]]
            wished = [Claim(name, slot, Trigger.SCHEDULE) for name in names]
            marks = dict.fromkeys(names, slot)
            begin = time.perf_counter()
            fires = ledger.settle_pass(term, slot, wished, (), marks)
            samples.append((time.perf_counter() - begin) * 1000)
            assert None not in fires
        sample = Sample(f"a transaction of {count} claims", "ms", tuple(samples))
        sheet.raw(sample)
        sheet.beside(sample.what, sample)
    ledger.close()


@dataclass(frozen=True, slots=True)
class _Office:
    """What works together in an agent, and a second desk over the same ledger, to be asked alone."""

    owner: Owner
    shift: Shift
    desk: Desk


@contextmanager
def _office(directory: Path, routines: bytes) -> Iterator[_Office]:
    """An owner at work in this process, with a socket for a manager's, over this file."""
    places = Places(str(directory / "state"), str(directory / "config"))
    os.mkdir(places.config, 0o700)
    Path(places.routines).write_bytes(routines)
    prepare_state_directory(places.state)
    files, clock, processes = PosixFiles(), SystemClock(), PosixProcesses(0o077)
    state = files.open_directory(places.state)
    files.make_directory(state, "run")
    run = files.open_directory_at(state, "run")
    user = find_this_user({**os.environ, "ANKITA_STATE_DIR": places.state, "ANKITA_CONFIG_DIR": places.config})
    card = Card("0" * 32, processes.this_process(), os.getuid(), "0", None, "host")
    owner = Owner(files, state, places.state, card)
    owner.announce()
    assert owner.try_acquire()
    wakeups = LinuxWakeups((signal.SIGTERM,))
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(directory / "notify"))
    readiness = SdNotify(str(directory / "notify"), Duration(60 * SECOND))
    runner = Runner(processes, AttemptOutputs(state), files, clock, run, Surroundings({}, "/", PosixEnvFiles()))
    requests = Requests(files, state)
    loaded = Routines(
        routine_source(user.places), LastGoodFile(files, state, places.state, LARGEST), routine_judge(), clock
    )
    reporter = Reporter(
        _tell_nobody, Lines(format_instant), _publish_nothing, readiness, card.token, "0", inherits_environment=False
    )
    patience = Patience(clock, readiness)
    patience.stamp = owner.stamp
    opened = Opened(patient_ledger(open_owner(places.ledger), patience.waiting), None)
    shift = Shift(
        World(clock, wakeups, processes, readiness),
        Manner(False, False, "a machine", f"{places.state}/requests"),
        owner,
        runner,
        loaded,
        requests,
        reporter,
        Book(_tell_nobody, Lines(format_instant)),
        patience,
        opened,
        loaded.start,
    )
    try:
        shift.work(Happened())
        yield _Office(owner, shift, _second_desk(opened.ledger, runner, requests, clock, loaded, owner))
    finally:
        shift.close()
        owner.leave()
        wakeups.close()
        manager.close()


def _second_desk(
    ledger: Ledger, runner: Runner, requests: Requests, clock: SystemClock, routines: Routines, owner: Owner
) -> Desk:
    timekeeper = Timekeeper(clock, Duration(0))
    plans = {routine.name: plan_of(routine, "a machine") for routine in routines.reload().file.routines}
    marks = {name: account.accounted_until for name, account in ledger.accounts().items()}
    desk = Desk(ledger, TERM, runner, requests, timekeeper, "boot", owner.check, owner.note_fire)
    desk.put(plans, marks, 4)
    return desk


def _tell_nobody(_: str, /, *, warning: bool = False) -> None:
    pass


def _publish_nothing(_: object) -> None:
    pass


def _ledger(path: Path) -> tuple[Ledger, int]:
    ledger = open_owner(str(path))
    return ledger, ledger.begin_term(0, "token", ProcessId(os.getpid(), 1, "boot", 1), NOW)


def _once(do: Callable[[], object]) -> float:
    """Microseconds."""
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1e6


def _many(what: str, do: Callable[[], object]) -> Sample:
    return Sample(what, "us", tuple(_once(do) for _ in range(OFTEN)))
