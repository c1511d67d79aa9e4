"""`ankita-agent install`."""

import os
import shlex
import shutil
import time
from collections.abc import Sequence
from typing import Final

import click

from ankita_agent import __version__
from ankita_agent.app.inspection import NOBODY, Seen, look
from ankita_agent.app.installation import Installation, Wanted, refuse_fleeting, refuse_sudo, refuse_unstartable
from ankita_agent.cli.interruption import say_halfway
from ankita_agent.cli.output import printable, say
from ankita_agent.core.errors import AnkitaError, BadConfiguration, ServiceNotUp
from ankita_agent.core.health import describe
from ankita_agent.core.install_plan import Change, Plan, Start, difference
from ankita_agent.core.instants import SECOND, Duration, Instant
from ankita_agent.core.journal import is_system_account, lines_command
from ankita_agent.core.outcomes import Outcome
from ankita_agent.core.rows import HistoryRow
from ankita_agent.core.service import UnitState
from ankita_agent.wiring.managers import newest_lines
from ankita_agent.wiring.outlook import look_at_clock, look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.service import (
    find_program_fault,
    make_installation,
    refuse_unusable_state,
    service_program,
    service_variables,
)
from ankita_agent.wiring.user import ThisUser, find_this_user

HEARTBEAT: Final = "heartbeat"
"""The routine of the sample that shows a sign of life every 10 s."""

_HEARTBEAT_WITHIN: Final = Duration(25 * SECOND)
_READ_AGAIN_WITHIN: Final = Duration(2 * SECOND)  # by an agent that runs already
_ENOUGH_ROWS: Final = 5  # for what can be claimed, at 10 s each, within that time
_LOOK_EVERY: Final = 0.05  # seconds between two looks at the ledger


@click.command("install")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--hardening/--no-hardening", default=None, help="Put in, or take away, a drop-in that limits what runs can do."
)
@click.option(
    "--linger/--no-linger", default=None, help="Switch lingering on, so that it runs while you are logged out, or not."
)
def command(dry_run: bool, hardening: bool | None, linger: bool | None) -> int:
    """Install the agent as a service of yours, start it, and see that it works.

    It writes a unit for systemd and, where you have none, a sample of routines.yaml. Once more after an upgrade it
    repairs what is out of date; your drop-ins are kept, and what runs is never interrupted. The first time it
    switches lingering on, where it may, unless --no-linger says otherwise; later, only with --linger.

    \b
    Exit status: 0 done, 1 installed but not up, 2 the service that is there serves
    other directories than this shell's, or the program does not start without this
    shell's variables, 69 there is no service manager to ask, 73 a file cannot be
    written.

    \b
    Example:
      ankita-agent install --dry-run
    """
    refuse_sudo(os.getuid(), os.environ.get("SUDO_UID", ""), "install")
    user = find_this_user(dict(os.environ))
    try:
        program = service_program()
        refuse_fleeting(program[0])
        refuse_unstartable(find_program_fault(user))
        refuse_unusable_state(user)
        installation = make_installation(user, say)
        wanted = Wanted(program, service_variables(user), __version__, hardening, linger)
        plan = installation.plan(wanted)
        if dry_run:
            _show(plan)
            return 0
        return _carry_out(user, installation, plan)
    except KeyboardInterrupt:
        return say_halfway(user, "ankita-agent install")


def _carry_out(user: ThisUser, installation: Installation, plan: Plan) -> int:
    installation.carry_out(plan)
    _warn_of_bad_routines(user)
    since = _in_force_since(plan)
    try:
        state = installation.start(plan)
    except ServiceNotUp:
        for line in newest_lines(user):
            say(f"it said     {line}", err=True)
        raise
    return _report(user, plan, state, since)


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


def _in_force_since(plan: Plan) -> Instant:
    """From when on what is claimed is claimed by an agent that has read the file of routines as it is now."""
    now = look_at_clock().now()
    return now if plan.start is Start.START else Instant(now + _READ_AGAIN_WITHIN)


def _report(user: ThisUser, plan: Plan, state: UnitState, since: Instant) -> int:
    """Say how it runs, and what comes next.

    `since` is the moment before which no run is a sign that the service works with this file.
    """
    if not state.activity.up:
        why = f" ({state.status_text})" if state.status_text else ""
        say(f"starting    it is not ready yet{why}; see: ankita-agent status")
        return 1
    say(f"running     {_role(user, plan, state)}")
    is_new = any(file.path == user.places.routines for file in plan.starter)
    works = _see_the_heartbeat(user, since) if is_new else True
    if plan.enable or is_new:
        _say_next(user)
    if is_new:
        say(f"Take {HEARTBEAT} out of the file once you have seen it: it writes two lines every 10 s.")
    return 0 if works else 1


def _role(user: ThisUser, plan: Plan, state: UnitState) -> str:
    owner = _look(user).owner
    if owner is None:
        return f"pid {state.main_pid}"
    card = owner.claim.card
    if card.process.pid != state.main_pid:
        where = "as a service" if card.manager else "in a terminal"
        return f"pid {state.main_pid}, as standby: the agent with pid {card.process.pid}, {where}, owns until it ends"
    old = "" if card.version == __version__ else f", still version {card.version}"
    if old and plan.start is not Start.RESTART:  # of which a restart has been told already
        old += f"; for {__version__}: ankita-agent restart"
    return f"pid {state.main_pid}, as owner{old}"


def _look(user: ThisUser) -> Seen:
    with looking(user.places) as outlook:
        if outlook.state is None:
            return NOBODY
        return look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())


def _see_the_heartbeat(user: ThisUser, since: Instant) -> bool:
    """Wait for a run of the sample's heartbeat that was claimed after `since`; Ctrl-C ends the waiting alone."""
    say(f"waiting     for the first run of {HEARTBEAT}, due every 10 s")
    try:
        row = _first_heartbeat(user, since)
    except KeyboardInterrupt:
        say("            no longer waiting")
        return True
    if row is None:
        say(f"note        {HEARTBEAT} has not run yet; see: ankita-agent status")
        return False
    say(f"{HEARTBEAT}   run {row.fire} {describe(row)}")
    return row.outcome is Outcome.SUCCEEDED


def _first_heartbeat(user: ThisUser, since: Instant) -> HistoryRow | None:
    with looking(user.places) as outlook:
        end = outlook.clock.awake() + _HEARTBEAT_WITHIN
        while outlook.ledger is not None and outlook.clock.awake() < end:
            try:
                rows = outlook.ledger.history(HEARTBEAT, _ENOUGH_ROWS)
            except AnkitaError:  # the ledger is busy: the next look will do
                rows = []
            row = _first_ended(rows, since)
            if row is not None:
                return row
            time.sleep(_LOOK_EVERY)
    return None


def _first_ended(rows: Sequence[HistoryRow], since: Instant) -> HistoryRow | None:
    """The oldest run that has ended of those claimed after `since`; rows are newest first. None when there is none."""
    counting = [row for row in rows if row.claimed_at is not None and row.claimed_at >= since]
    return next((row for row in reversed(counting) if row.outcome is not None), None)


def _say_next(user: ThisUser) -> None:
    uid, routines = os.getuid(), shlex.quote(user.places.routines)
    say("")
    say("Next:")
    say(f"  {_editor(uid)}{routines}    what runs when; in force when you save it")
    say("  ankita-agent status    how agent and routines are doing")
    say(f"  {lines_command(uid, '-f')}    what happens, as it happens{', for root' if is_system_account(uid) else ''}")


def _editor(uid: int) -> str:
    """What opens a file, with a space; nothing for an account that nobody sits at."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen is None and uid != 0 and is_system_account(uid):
        return ""
    return f"{chosen or next((name for name in ('sensible-editor', 'nano') if shutil.which(name)), 'vi')} "
