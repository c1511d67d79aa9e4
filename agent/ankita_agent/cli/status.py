"""`ankita-agent status`."""

import os

import click

from ankita_agent import __version__
from ankita_agent.app.inspection import NOBODY, look
from ankita_agent.app.queries import Document, status_code, status_document
from ankita_agent.cli.output import coloured, json_option, local_time, print_json
from ankita_agent.core.durations import approximate
from ankita_agent.core.errors import NoSuchRoutine
from ankita_agent.core.instants import SECOND, parse_instant
from ankita_agent.core.outcomes import Health
from ankita_agent.wiring import Outlook, find_this_user, look_at_processes, looking


@click.command("status")
@click.argument("routine", required=False)
@json_option
def command(routine: str | None, as_json: bool) -> int:
    """How the agent and its routines are doing.

    \b
    Exit status: 0 all well, 1 a routine is failing or stalled or the agent
    needs a look, 3 no agent runs, 4 no such routine.

    \b
    Example:
      ankita-agent status --json
    """
    user = find_this_user(dict(os.environ))
    with looking(user.places) as outlook:
        document = _document(outlook, user.places.state, user.places.routines)
        if routine is not None:
            document["routines"] = [_named(document["routines"], routine)]
        if as_json:
            print_json(document)
        else:
            _print(document, outlook)
        return status_code(document)


def _document(outlook: Outlook, state_dir: str, config_path: str) -> Document:
    seen = NOBODY
    if outlook.state is not None:
        seen = look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())
    summaries = outlook.ledger.summaries() if outlook.ledger else []
    return status_document(
        __version__, state_dir, config_path, seen, summaries, outlook.clock.now(), outlook.problem
    )


def _named(routines: list[Document], name: str) -> Document:
    for document in routines:
        if document["name"] == name:
            return document
    raise no_such_routine(name, [document["name"] for document in routines])


def no_such_routine(name: str, known: list[str]) -> NoSuchRoutine:
    """The fault for a name that no routine bears, with the nearest that one does."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return NoSuchRoutine(
        f"there is no routine {name!r} in force",
        fact=f"there are {len(known)}: {', '.join(known[:8])}{' …' if len(known) > 8 else ''}"
        if known
        else "no routine is in force at all",
        now="nothing was done",
        do=f"did you mean {near[0]}?" if near else "see them: ankita-agent list",
    )


def _print(document: Document, outlook: Outlook) -> None:
    now = outlook.clock.now()
    owner = document["owner"]
    if owner is None:
        click.echo("agent    not running; start it: ankita-agent run")
    else:
        age = "" if owner["progress_age_s"] is None else f", last progress {owner['progress_age_s']:.0f}s ago"
        since = approximate(now - parse_instant(owner["since"]))
        manager = f" under {owner['manager']}" if owner["manager"] else ""
        click.echo(
            f"agent    {owner['state']}, pid {owner['pid']}{manager}, version {owner['version']}, "
            f"owner of term {owner['term']} for {since}{age}"
        )
    if document["standbys"]:
        click.echo(f"standbys {document['standbys']}")
    click.echo(f"state    {document['state_dir']}")
    click.echo(f"config   {document['config']['path']}")
    for reason in document["degraded"]:
        click.echo(f"{click.style('degraded', fg='red')} {reason}")
    for routine in document["routines"]:
        _print_routine(routine, now)


def _print_routine(routine: Document, now: int) -> None:
    doing = "running" if routine["running"] else _left(routine, now)
    health = routine["health"] if routine["enabled"] else "disabled"
    click.echo(f"{coloured(health):<8} {click.style(routine['name'], bold=True)}: {doing}")
    if routine["reason"] and health not in (Health.NEW.value, "disabled"):
        click.echo(f"         {routine['reason']}; see: ankita-agent history {routine['name']}")


def _left(routine: Document, now: int) -> str:
    if not routine["enabled"]:
        return "does not run"
    if routine["next_slot"] is None:
        return "at the next boot" if routine["schedule"] == "@reboot" else "nothing is due"
    left = parse_instant(routine["next_slot"]) - now
    return f"next {local_time(routine['next_slot'])}, in {approximate(left - left % SECOND)}"
