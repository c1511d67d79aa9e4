"""What an agent costs while nothing is due: how often it wakes up, and its memory.

A wake-up is a return of the loop's one wait. They are counted exactly and without a tracer: every return is
followed by one pass, and every pass is numbered in the life file. Beside them stand the voluntary context
switches of all threads (proc(5), /proc/PID/task/TID/status), which the peer can be asked for as well: they hold
the waits for the disk inside a pass too, for an owner notes in its ledger each half minute that it was there.

PSS divides a page among those who map it, so a second Python on the machine (this one) makes it smaller. Alone
it is little less than RSS; what is the process's own whoever else runs is the private part.
"""

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ankita_agent.app.claim import read_life
from tests.bench import peers
from tests.bench.measured import LeftOut, Sample, Sheet
from tests.bench.mix import sleeping_file
from tests.real.agents import Agent, Place

ROUTINES: Final = 50
_SWITCHES: Final = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)


def idle(directory: Path, sheet: Sheet) -> None:
    """A minute of 50 routines of which none is due, and of APScheduler with 50 jobs beside it."""
    sheet.begin(f"one idle minute with {ROUTINES} routines")
    without = peers.why_no_apscheduler()
    with ExitStack() as both:
        place = both.enter_context(Place(_made(directory / "ours")))
        place.write(sleeping_file(ROUTINES))
        agent = place.start()
        pids = {"ankita-agent": agent.pid}
        if without is None:
            hour = str((time.gmtime().tm_hour + 12) % 24)
            pids["APScheduler"] = both.enter_context(peers.apscheduler("daily", hour, ROUTINES, "true"))
        time.sleep(3)  # what a start leaves to do is no idling
        before = {name: _switches(pid) for name, pid in pids.items()}
        passes = _passes(place, agent)
        time.sleep(60)
        passes = _passes(place, agent) - passes
        woken = {name: _switches(pid) - before[name] for name, pid in pids.items()}
        memory = {name: _memory(pid) for name, pid in pids.items()}
    for name in pids:
        sheet.raw(Sample(f"{name}: voluntary context switches", "a minute", (woken[name],)))
        sheet.raw(Sample(f"{name}: PSS, RSS, private", "MiB", memory[name]))
    seen = f"{passes} (context switches, those for the disk included: {woken['ankita-agent']})"
    sheet.figure(f"3 wake-ups, {ROUTINES} routines idle", "<= 6 a minute", seen, passed=passes <= 6)
    pss, *_ = memory["ankita-agent"]
    sheet.figure(
        f"3 memory, {ROUTINES} routines idle",
        "PSS <= 35 MiB",
        _in_words(memory["ankita-agent"]),
        passed=pss <= 35,
    )
    if without is None:
        theirs = f"{woken['APScheduler']} context switches a minute; {_in_words(memory['APScheduler'])}"
        sheet.beside(f"APScheduler, {ROUTINES} jobs idle", theirs)
    else:
        sheet.beside("APScheduler", LeftOut("APScheduler", without))


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _switches(pid: int) -> int:
    """Of all threads that the process has now."""
    return sum(int(_SWITCHES.findall(path.read_text())[0]) for path in Path(f"/proc/{pid}/task").glob("*/status"))


def _passes(place: Place, agent: Agent) -> int:
    """The passes that the one agent of this place has finished."""
    for path in (place.state / "own" / "life").iterdir():
        card, progress = read_life(path.read_bytes())
        if card is not None and progress is not None and card.process.pid == agent.pid:
            return progress.passes
    raise AssertionError("the agent shows no progress")


def _memory(pid: int) -> tuple[float, float, float]:
    """PSS, RSS and private memory in MiB (proc(5), /proc/PID/smaps_rollup)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = {name: int(size) / 1024 for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return found["Pss"], found["Rss"], found["Private_Clean"] + found["Private_Dirty"]


def _in_words(memory: tuple[float, float, float]) -> str:
    pss, rss, private = memory
    return f"PSS {pss:.1f} MiB (RSS {rss:.1f}, private {private:.1f})"
