"""`ankita-agent status`."""

import os

import click

from ankita_agent import __version__
from ankita_agent.app.claim import Role
from ankita_agent.app.inspection import NOBODY, Seen, look
from ankita_agent.app.queries import Document, status_code, status_document
from ankita_agent.app.service import look_at_service
from ankita_agent.cli.names import document_of
from ankita_agent.cli.output import coloured, json_option, local_time, print_json, printable, time_left
from ankita_agent.core.durations import approximate
from ankita_agent.core.elsewhere import told
from ankita_agent.core.errors import BadConfiguration, LedgerDamaged, LedgerUnavailable
from ankita_agent.core.health import RUN_OUTCOMES
from ankita_agent.core.instants import SECOND, Instant, parse_instant
from ankita_agent.core.outcomes import Health
from ankita_agent.core.rows import RoutineSummary
from ankita_agent.core.service_ends import lines_for
from ankita_agent.core.service_view import ServiceView, describe_service, describe_version
from ankita_agent.wiring.elsewhere import find_bearings
from ankita_agent.wiring.managers import service_manager
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.service import unit_file_look
from ankita_agent.wiring.user import ThisUser, find_this_user

_WIDTH = 8
"""Of the first column: the longest words in it are `degraded` and `mistakes`."""


@click.command("status")
@click.argument("routine", required=False)
@json_option
def command(routine: str | None, as_json: bool) -> int:
    """How the agent and its routines are doing.

    \b
    Exit status: 0 all well, 1 a routine is failing or stalled or the
    agent needs a look, 3 no agent runs, 4 no such routine.

    \b
    Example:
      ankita-agent status --json
    """
    user = find_this_user(dict(os.environ))
    service = look_at_service(service_manager(user, quick=True), unit_file_look(user), lines_for(os.getuid()))
    with looking(user.places) as outlook:
        summaries, problem = _summaries(outlook)
        seen = _seen(outlook)
        document = _document(outlook, user, seen, summaries, problem, service)
        if routine is not None and not problem:  # else nobody knows whether there is one
            document["routines"] = [document_of(routine, document["routines"])]
        if as_json:
            print_json(document)
        else:
            _print(document, outlook.clock.now(), service, _place_of_service(user, seen, service))
        return status_code(document)


def _summaries(outlook: Outlook) -> tuple[list[RoutineSummary], str | None]:
    """What the ledger says of the routines, and what keeps it from being read."""
    if outlook.ledger is None:
        return [], str(outlook.problem) if outlook.problem else None
    try:
        return outlook.ledger.summaries(), None
    except (LedgerDamaged, LedgerUnavailable) as fault:
        return [], str(fault)


def _seen(outlook: Outlook) -> Seen:
    if outlook.state is None:
        return NOBODY
    return look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())


def _document(
    outlook: Outlook,
    user: ThisUser,
    seen: Seen,
    summaries: list[RoutineSummary],
    problem: str | None,
    service: ServiceView,
) -> Document:
    mistakes = ""
    if seen.owner is None:
        try:
            read_routines(user)
        except BadConfiguration as fault:
            mistakes = f"{fault.what}; {fault.do}"
    places = user.places
    return status_document(
        __version__, places.state, places.routines, seen, summaries, outlook.clock.now(), problem, mistakes, service
    )


def _place_of_service(user: ThisUser, seen: Seen, service: ServiceView) -> str:
    """What the process of the service is to the agents of this state directory; nothing where it is their owner."""
    if service.unit is None or service.unit.main_pid is None or not service.active:
        return ""
    elsewhere = find_bearings(user, service.unit).elsewhere
    if elsewhere:
        return f"it is not the agent of this shell: {told(elsewhere)}"
    cards = (other for other in seen.others if other.card.process.pid == service.unit.main_pid)
    role = next((other.role for other in cards), None)
    if seen.owner is not None and role is Role.STANDBY:
        return f"it stands by, and owns as soon as pid {seen.owner.claim.card.process.pid} ends"
    owns = seen.owner is not None and seen.owner.claim.card.process.pid == service.unit.main_pid
    return "" if owns or role is not None else "its agent has its state elsewhere; see: ankita-agent doctor"


def _print(document: Document, now: Instant, service: ServiceView, place: str) -> None:
    _print_agent(document, now, service)
    _print_service(document, service, place)
    _say("state", document["state_dir"])
    _say("config", document["config"]["path"])
    if document["owner"] is None and document["config"]["error"]:
        _say("mistakes", document["config"]["error"])
    for reason in document["degraded"]:
        click.echo(f"{click.style('degraded', fg='red')} {printable(reason, newlines=True)}")
    for routine in document["routines"]:
        _print_routine(routine, now, owned=document["owner"] is not None)


def _print_service(document: Document, service: ServiceView, place: str) -> None:
    line = describe_service(service)
    if line:
        _say("service", line)
    if place:
        _say("", place)
    owner = document["owner"]
    if owner is not None and service.unit is not None and owner["pid"] == service.unit.main_pid:
        outdated = describe_version(owner["version"], document["version"])
        if outdated:
            _say("", outdated)


def _print_agent(document: Document, now: Instant, service: ServiceView) -> None:
    owner = document["owner"]
    if owner is not None:
        age = "" if owner["progress_age_s"] is None else f", last progress {owner['progress_age_s']:.0f}s ago"
        since = now - parse_instant(owner["since"])
        manager = f" under {owner['manager']}" if owner["manager"] else ""
        _say(
            "agent",
            f"{owner['state']}, pid {owner['pid']}{manager}, version {owner['version']}, "
            f"owner for {approximate(since - since % SECOND)}{age}",
        )
        if document["inherits_environment"]:
            _say("", "its runs get the environment of the shell that started it (--inherit-env)")
    elif not document["stopping"]:
        start = "" if service.begun else f"; start it: ankita-agent {'start' if service.startable else 'run'}"
        _say("agent", f"not running{start}")
    for pid in document["stopping"]:
        _say("agent" if owner is None else "", f"stopping, pid {pid}: waits for what it still runs")
    if document["standbys"]:
        _say("standbys", str(document["standbys"]))


def _say(what: str, text: str) -> None:
    click.echo(f"{what:<{_WIDTH}} {printable(text, newlines=True)}")


def _print_routine(routine: Document, now: Instant, *, owned: bool) -> None:
    doing = "running" if routine["running"] else _left(routine, now, owned=owned)
    health = routine["health"] if routine["enabled"] else "disabled"
    click.echo(f"{coloured(health, _WIDTH)} {click.style(printable(routine['name']), bold=True)}: {doing}")
    if routine["reason"] and health not in (Health.NEW.value, "disabled"):
        more = "logs" if _is_about_a_run(routine) else "history"
        _say("", f"{routine['reason']}; see: ankita-agent {more} {routine['name']}")


def _is_about_a_run(routine: Document) -> bool:
    """Whether what ails the routine shows in the output of its newest run."""
    last = routine["last"]
    return routine["health"] == Health.FAILING.value or (last is not None and last["outcome"] in RUN_OUTCOMES)


def _left(routine: Document, now: Instant, *, owned: bool) -> str:
    if not routine["enabled"]:
        return "does not run"
    if routine["next_slot"] is None:
        return "at the next boot" if routine["schedule"] == "@reboot" else "nothing is due"
    when = local_time(routine["next_slot"])
    if not owned:
        return f"would be next at {when}, with an agent"
    left = time_left(routine["next_slot"], now)
    return f"due since {when}, and waits" if left == "due" else f"next {when}, in {left}"
