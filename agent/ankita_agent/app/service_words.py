"""What people are told about the service: facts in, lines and faults out. `app.service` gathers the facts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.claim import Card, Role
from ankita_agent.app.inspection import Seen
from ankita_agent.core.durations import approximate
from ankita_agent.core.errors import ManagerUnreachable, ServiceNotUp
from ankita_agent.core.health import describe
from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.rows import HistoryRow, OpenFire
from ankita_agent.core.service import Activity, JobEnd, UnitState, Unreachable
from ankita_agent.core.service_ends import LINES, explain_end
from ankita_agent.core.service_view import REWRITE, FilesSeen, mend_files, unusable

LOOK: Final = "see: ankita-agent status"

UNSEEN: Final = (
    "what it runs cannot be named: its state is not the one of this shell, or it has not said yet who it is; "
    "look closer: ankita-agent doctor"
)
"""The service runs, and its agent is not among those of the state directory."""


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of the agents and runs of a state directory at one moment.

    `runs` are the open fires whose processes may live; `ended` the rows, of those that were asked for, that have an
    outcome; `coming` is the routine that comes next, and when. What cannot be read counts as not there.
    """

    seen: Seen
    runs: tuple[OpenFire, ...] = ()
    ended: tuple[HistoryRow, ...] = ()
    coming: tuple[str, Instant] | None = None

    def card(self, pid: int | None) -> Card | None:
        """The card of the agent with that pid; None when no agent here has it."""
        owner = () if self.seen.owner is None else (self.seen.owner.claim.card,)
        cards = (*owner, *(other.card for other in self.seen.others))
        return next((card for card in cards if card.process.pid == pid), None)

    @property
    def degraded(self) -> tuple[str, ...]:
        """Why the owner is degraded, as far as it has said so."""
        return () if self.seen.report is None else self.seen.report.degraded

    def settled(self, pid: int | None) -> bool:
        """Whether the agent of that pid has shown who it is and, as the owner, how it is."""
        return self.card(pid) is not None and (not self.owned_by(pid) or self.seen.report is not None)

    def owned_by(self, pid: int | None) -> bool:
        """Whether the process of that pid is the owner."""
        return self.seen.owner is not None and self.seen.owner.claim.card.process.pid == pid


@dataclass(frozen=True, slots=True)
class Answer:
    """The last line to say, and the exit status."""

    text: str
    code: int = 0


def runs_of(unit: UnitState, view: View) -> tuple[OpenFire, ...]:
    """The runs that the service waits for when it stops: those of its own agent, and those that it adopted."""
    if view.card(unit.main_pid) is None:
        return ()
    elsewhere = {other.card.token for other in view.seen.others if other.card.process.pid != unit.main_pid}
    if view.seen.owner is not None and not view.owned_by(unit.main_pid):
        elsewhere.add(view.seen.owner.claim.card.token)
    return tuple(run for run in view.runs if run.token not in elsewhere) if _had_runs(unit, view) else ()


def _had_runs(unit: UnitState, view: View) -> bool:
    """A standby has none."""
    roles = {other.card.process.pid: other.role for other in view.seen.others}
    return roles.get(unit.main_pid or 0, Role.OWNER) is not Role.STANDBY


def enclosing(fire: int | None, runs: tuple[OpenFire, ...]) -> str:
    """Why a command that is part of one of these runs does not wait for them; empty when it is part of none."""
    run = next((run for run in runs if run.fire == fire), None)
    if run is None:
        return ""
    return f"not waiting here, for this command is itself part of run {run.fire} of {run.routine}"


def patience_with(runs: tuple[OpenFire, ...], verb: str) -> str:
    """How long runs may go on, and how to end that."""
    them = "it" if len(runs) == 1 else "them"
    after = "after agent.stop_drain (20s, unless routines.yaml says otherwise)"
    return f"{after} the agent stops {them}; at once: ankita-agent {verb} --now"


def refuse(unit: UnitState, verb: str, look_at_files: Callable[[UnitState], FilesSeen]) -> None:
    """Raise ServiceNotUp for a unit that cannot be started."""
    fact, do = "", ""
    now = f"nothing was changed; it runs on, pid {unit.main_pid}" if unit.activity.up else "nothing was changed"
    if unit.masked:
        fact = "it is masked: somebody has forbidden it to start"
        do = f"allow it again: {unit.unmask}    then: ankita-agent {verb}"
    elif unit.load == "not-found" and unit.activity.up:
        fact, do = "its unit file is gone", REWRITE
    elif unit.load == "not-found":
        fact = "it is not installed"
        do = "install it: ankita-agent install    or without a service, in this terminal: ankita-agent run"
    elif unit.load != "loaded":
        fact, do = unusable(unit, look_at_files(unit)), mend_files(unit, verb)
    if fact:
        raise ServiceNotUp(f"cannot {verb} the service", fact=fact, now=now, do=do)


def comes_back(unit: UnitState) -> str:
    """It had ended, and its manager is about to start it again."""
    return f"it ended, and its manager was about to start it again ({explain_end(unit, JobEnd.FAILED).fact})"


def not_up(unit: UnitState, end: JobEnd, patience: Duration, lines: str) -> ServiceNotUp:
    """The fault of a service that was to come up; `lines` is the command that shows what it said."""
    if end is JobEnd.PENDING and unit.activity in (Activity.ACTIVATING, Activity.DEACTIVATING):
        return ServiceNotUp(
            f"the service was not up within {approximate(patience)}",
            fact=f"it is still {unit.activity} ({unit.sub})",
            now="its manager goes on with it",
            do=f"{LOOK}    and what it says: {lines}",
        )
    told = explain_end(unit, end, lines)
    return ServiceNotUp("the service did not come up", fact=told.fact, now=told.now, do=told.do)


def not_down(unit: UnitState, patience: Duration) -> ServiceNotUp:
    """The fault of a service that was to go down."""
    return ServiceNotUp(
        f"the service was not down within {approximate(patience)}",
        fact=f"it is still {unit.activity} ({unit.sub})" + (f", pid {unit.main_pid}" if unit.main_pid else ""),
        now="its manager goes on with it, and ends it when it takes too long",
        do=f"{LOOK}    or stop its runs at once: ankita-agent stop --now",
    )


def ended(row: HistoryRow) -> str:
    """How a run ended."""
    return f"{row.routine}: run {row.fire} {describe(row)}"


def unknown_end(run: OpenFire) -> str:
    """A run that nobody saw the end of."""
    return f"{run.routine}: run {run.fire} was not seen to end; the next agent records what became of it"


@dataclass(frozen=True, slots=True)
class Words:
    """Lines with instants, which `local` writes as people read them here; `lines` shows what the service said."""

    local: Callable[[Instant], str]
    lines: str = LINES

    def up(self, unit: UnitState, view: View, *, already: bool = False) -> str:
        """It is up: as what, who it is, what comes next."""
        pid, card = unit.main_pid, view.card(unit.main_pid)
        was = "was up already" if already else "is up"
        if card is None:
            return (
                f"the service {was}, pid {pid}; its state is not the one of this shell, or it has not said yet "
                "who it is; look closer: ankita-agent doctor"
            )
        owner, told = view.seen.owner, "".join(f"\ndegraded: {reason}" for reason in view.degraded)
        who = f"pid {pid}, version {card.version}"
        if owner is None or not view.owned_by(pid):
            other = "" if owner is None else f": pid {owner.claim.card.process.pid} owns, and not as this service"
            return f"the service {was} as standby, {who}{other}"
        coming = "nothing is due"
        if view.coming is not None:
            coming = f"next: {view.coming[0]} at {self.local(view.coming[1])}"
        return f"the service {was} as owner of term {owner.claim.term}, {who}; {coming}{told}"

    def goes_on(self, run: OpenFire, *, now: bool) -> str:
        """A run that is there while its agent is asked to stop."""
        since = "" if run.started_at is None else f", since {self.local(run.started_at)}"
        pid = "" if run.process is None else f"pid {run.process.pid}"
        doing = "stopping" if now else "waiting for"
        return f"{doing} run {run.fire} of {run.routine} ({pid}{since})"

    def so_now(self, view: View) -> str:
        """What can be said of the agents when their manager says nothing."""
        owner = view.seen.owner
        if owner is None:
            return "No agent owns the routines."
        pid, since = owner.claim.card.process.pid, self.local(owner.claim.since)
        return f"The agent with pid {pid} owns the routines since {since}, and they go on."


def was_down(unit: UnitState, view: View) -> Answer:
    """There was nothing to stop."""
    if unit.load == "not-found":
        text = "nothing to stop: the service is not installed"
    elif unit.activity is Activity.FAILED:
        text = f"nothing to stop: the service failed ({explain_end(unit, JobEnd.FAILED).fact})"
    else:
        text = "nothing to stop: the service does not run"
    return _beside(text, view)


def down(unit: UnitState, view: View, lines: str) -> Answer:
    """It is down; whether it went well, who goes on in its place, and what starts it again."""
    text = "the service is stopped"
    if unit.activity is Activity.FAILED:
        why = explain_end(unit, JobEnd.FAILED).fact
        if unit.result == "timeout":
            why = "it did not end in time, and was killed"
        text += f", and not in good order ({why}); what it said: {lines}"
    if unit.enabled:
        text += "\nit starts again at the next login or boot, unless: systemctl --user disable ankita-agent"
    return _beside(text, view)


def without_manager(verb: str, fault: ManagerUnreachable, view: View) -> str:
    """What to do where the manager cannot be asked: how to end an agent that it did not start, or to have one."""
    owner, no_manager = view.seen.owner, fault.reason is Unreachable.NO_SYSTEMD
    by_hand = owner is not None and (no_manager or owner.claim.card.manager is None)
    if owner is None or not by_hand:
        return "" if no_manager and verb == "stop" else fault.do
    if verb == "start":
        return ""
    ending = _ending(owner.claim.card.process.pid)
    again = "" if verb == "stop" else "    then start it again as it was started before"
    return f"{ending}{again}"


def _ending(pid: int) -> str:
    return f"end it with Ctrl-C in its terminal, or: kill -INT {pid}"


def started_again(unit: UnitState) -> Answer:
    """Somebody else wanted otherwise."""
    return Answer(f"the service was stopped, and somebody has started it again: pid {unit.main_pid}", 1)


def _beside(text: str, view: View) -> Answer:
    """Who owns all the same, and how to end that."""
    owner = view.seen.owner
    if owner is None and view.seen.standbys:
        return Answer(f"{text}\nthe routines go on: another agent was waiting to own them; {LOOK}", 1)
    if owner is None:
        return Answer(text)
    pid = owner.claim.card.process.pid
    return Answer(
        f"{text}\nthe routines go on: pid {pid} owns them, and it is not the service; {_ending(pid)}",
        1,
    )
