"""`ankita-agent install`."""

import os
import shlex
import shutil
import time
from typing import Final

import click

from ankita_agent import __version__
from ankita_agent.app.inspection import NOBODY, Seen, look
from ankita_agent.app.installation import Wanted, refuse_fleeting, refuse_sudo
from ankita_agent.cli.output import printable, say
from ankita_agent.core.errors import AnkitaError, BadConfiguration, ServiceNotUp
from ankita_agent.core.health import describe
from ankita_agent.core.install_plan import Change, Plan, Start, difference
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.outcomes import Outcome
from ankita_agent.core.rows import HistoryRow
from ankita_agent.core.service import UnitState
from ankita_agent.wiring.managers import newest_lines
from ankita_agent.wiring.outlook import look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.service import make_installation, service_program, service_variables
from ankita_agent.wiring.user import ThisUser, find_this_user

HEARTBEAT: Final = "heartbeat"
"""The routine of the sample that shows a sign of life every 10 s."""

_HEARTBEAT_WITHIN: Final = Duration(20 * SECOND)
_LOOK_EVERY: Final = 0.05  # seconds between two looks at the ledger


@click.command("install")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--hardening/--no-hardening", default=None, help="Put in, or take away, a drop-in that limits what runs can do."
)
@click.option("--no-linger", is_flag=True, help="Do not have it run while you are logged out.")
def command(dry_run: bool, hardening: bool | None, no_linger: bool) -> int:
    """Install the agent as a service of yours, start it, and see that it works.

    It writes a unit for systemd and, where you have none, a sample of routines.yaml. Once more after an upgrade it
    repairs what is out of date; your drop-ins are kept, and what runs is never interrupted.

    \b
    Exit status: 0 done, 1 installed but not up, 69 there is no service manager to
    ask, 73 a file cannot be written.

    \b
    Example:
      ankita-agent install --dry-run
    """
    refuse_sudo(os.getuid(), os.environ.get("SUDO_UID", ""), "install")
    user = find_this_user(dict(os.environ))
    program = service_program()
    refuse_fleeting(program[0])
    installation = make_installation(user, say)
    wanted = Wanted(program, service_variables(user), __version__, hardening, linger=not no_linger)
    plan = installation.plan(wanted)
    if dry_run:
        _show(plan)
        return 0
    installation.carry_out(plan)
    _warn_of_bad_routines(user)
    try:
        state = installation.start(plan)
    except KeyboardInterrupt:
        say("no longer waiting; the service goes on starting, see: ankita-agent status", err=True)
        return 130
    except ServiceNotUp:
        for line in newest_lines(user):
            say(f"it said     {line}", err=True)
        raise
    return _report(user, plan, state)


def _show(plan: Plan) -> None:
    """What would be done, the changes of units as a diff."""
    for file in plan.units:
        if file.change is Change.EDITED:
            say(f"{file.path} was edited by hand; it would be kept beside, as {file.path}.edited")
        click.echo(printable(difference(file), newlines=True), nl=False)
    for file in plan.starter:
        say(f"would write    {file.path}")
    if plan.enable:
        say(f"would enable   the service, to start {plan.begins}")
    if plan.linger:
        say("would switch   lingering on, so that it runs while you are logged out, and after a reboot")
    match plan.start:
        case Start.START:
            say("would start    the service")
        case Start.RESTART:
            say("would leave    the service running as it was before, until: ankita-agent restart")
        case Start.NOTHING if plan.changes_nothing:
            say("nothing to do: everything is as it is to be")


def _warn_of_bad_routines(user: ThisUser) -> None:
    try:
        read_routines(user)
    except BadConfiguration as fault:
        say(f"note        {fault.what}; see all of it: ankita-agent check")


def _report(user: ThisUser, plan: Plan, state: UnitState) -> int:
    """Say how it runs, and what comes next."""
    if not state.activity.up:
        why = f" ({state.status_text})" if state.status_text else ""
        say(f"starting    it is not ready yet{why}; see: ankita-agent status")
        return 1
    say(f"running     {_role(user, state)}")
    is_new = any(file.path == user.places.routines for file in plan.starter)
    works = _see_the_heartbeat(user) if is_new else True
    if plan.enable or is_new:
        _say_next(user)
    return 0 if works else 1


def _role(user: ThisUser, state: UnitState) -> str:
    owner = _look(user).owner
    if owner is None:
        return f"pid {state.main_pid}"
    card = owner.claim.card
    if card.process.pid != state.main_pid:
        where = "as a service" if card.manager else "in a terminal"
        return f"pid {state.main_pid}, as standby: the agent with pid {card.process.pid}, {where}, owns until it ends"
    old = (
        ""
        if card.version == __version__
        else f", still version {card.version}; for {__version__}: ankita-agent restart"
    )
    return f"pid {state.main_pid}, as owner{old}"


def _look(user: ThisUser) -> Seen:
    with looking(user.places) as outlook:
        if outlook.state is None:
            return NOBODY
        return look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())


def _see_the_heartbeat(user: ThisUser) -> bool:
    """Wait for the first success of the sample's heartbeat; Ctrl-C ends the waiting alone."""
    say(f"waiting     for the first run of {HEARTBEAT}, due every 10 s")
    try:
        row = _first_heartbeat(user)
    except KeyboardInterrupt:
        say("            no longer waiting")
        return True
    if row is None:
        say(f"note        {HEARTBEAT} has not run yet; see: ankita-agent status")
        return False
    say(f"{HEARTBEAT}   run {row.fire} {describe(row)}")
    return row.outcome is Outcome.SUCCEEDED


def _first_heartbeat(user: ThisUser) -> HistoryRow | None:
    with looking(user.places) as outlook:
        end = outlook.clock.awake() + _HEARTBEAT_WITHIN
        while outlook.ledger is not None and outlook.clock.awake() < end:
            try:
                rows = outlook.ledger.history(HEARTBEAT, 1)
            except AnkitaError:  # the ledger is busy: the next look will do
                rows = []
            if rows and rows[0].outcome is not None:
                return rows[0]
            time.sleep(_LOOK_EVERY)
    return None


def _say_next(user: ThisUser) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _an_editor()
    say("")
    say("Next:")
    say(f"  {editor} {shlex.quote(user.places.routines)}    what runs when; in force when you save it")
    say("  ankita-agent status    how agent and routines are doing")
    say("  journalctl --user -u ankita-agent -f    what happens, as it happens")


def _an_editor() -> str:
    return next((name for name in ("sensible-editor", "nano", "vi") if shutil.which(name)), "vi")
