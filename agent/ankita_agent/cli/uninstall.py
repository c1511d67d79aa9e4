"""`ankita-agent uninstall`."""

import os
import shlex
from contextlib import ExitStack

import click

from ankita_agent.app.inspection import look
from ankita_agent.app.installation import refuse_sudo
from ankita_agent.app.purge import purge, refuse_living, refuse_strange
from ankita_agent.app.queries import next_slot_of
from ankita_agent.app.removal import Installed, Removal, refuse_removing, refuse_within
from ankita_agent.cli.interruption import say_halfway
from ankita_agent.cli.output import near_time, printable, say
from ankita_agent.core.environment import FIRE_VARIABLE
from ankita_agent.core.errors import AnkitaError, SomeoneElseOwns
from ankita_agent.core.instants import format_instant
from ankita_agent.core.rows import RoutineSummary
from ankita_agent.wiring.elsewhere import find_bearings
from ankita_agent.wiring.managers import login_manager
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.service import make_removal
from ankita_agent.wiring.user import ThisUser, find_this_user


@click.command("uninstall")
@click.option("--purge", "and_state", is_flag=True, help="Remove the state too: history and the output of runs.")
@click.option("--now", is_flag=True, help="Do not wait for what runs: stop it at once.")
def command(and_state: bool, now: bool) -> int:
    """Stop the service and take it away; routines.yaml stays, and so does all that you wrote yourself.

    Runs get the time to end that a stop gives them. It says which routines stop, and when each would have run
    next.

    \b
    Exit status: 0 done, or nothing to do, 1 the service manager could not be asked
    or the service did not stop, 2 it serves other directories than this shell's, or
    this is one of its runs, 73 a file cannot be removed, or with --purge the state
    is none of an agent's, 75 with --purge, an agent lives or a run goes on.

    \b
    Example:
      ankita-agent uninstall
    """
    refuse_sudo(os.getuid(), os.environ.get("SUDO_UID", ""), "uninstall")
    user = find_this_user(dict(os.environ))
    try:
        return _uninstall(user, and_state=and_state, now=now)
    except KeyboardInterrupt:
        return say_halfway(user, "ankita-agent uninstall" + " --purge" * and_state + " --now" * now)


def _uninstall(user: ThisUser, *, and_state: bool, now: bool) -> int:
    removal = make_removal(user, say)
    installed = removal.look()
    if installed.state is not None:
        bearings = find_bearings(user, installed.state)
        refuse_removing(bearings.elsewhere, bearings.set_here)
    _look_before(user, installed, and_state=and_state, now=now)
    _carry_out(user, removal, installed, and_state=and_state, now=now)
    _say_what_stays(user, installed, and_state=and_state)
    return _say_what_remains(installed)


def _look_before(user: ThisUser, installed: Installed, *, and_state: bool, now: bool) -> None:
    """Refuse what must not be done, and say what stops.

    Without --purge the state is looked at for what there is to say, and no fault of it keeps the service from going.
    """
    with ExitStack() as opened:
        outlook = None
        try:
            outlook = opened.enter_context(looking(user.places))
            other = _other_owner(outlook, installed)
        except (AnkitaError, OSError) as fault:
            if and_state:
                raise
            what = f"{fault.what}: {fault.fact}" if isinstance(fault, AnkitaError) else str(fault)
            say(f"note        it cannot be said which routines stop: {what}")
            outlook, other = None, None
        if installed.running and other is None:
            refuse_within(os.environ.get(FIRE_VARIABLE, ""))
        if outlook is not None and and_state:
            _refuse_to_purge(outlook, installed, user)
        if outlook is not None and installed.running:
            _say_what_stops(outlook, other, now=now)


def _carry_out(user: ThisUser, removal: Removal, installed: Installed, *, and_state: bool, now: bool) -> None:
    if installed.nothing:
        say("nothing to do: there is no service of ankita-agent here")
    else:
        if installed.running:
            removal.stop(now=now)
        removal.carry_out(installed)
    if and_state:
        _purge(user, installed)


def _refuse_to_purge(outlook: Outlook, installed: Installed, user: ThisUser) -> None:
    """The state has to be an agent's, and no agent may live, but for the service, which is going to be stopped."""
    if outlook.state is None:
        return
    refuse_strange(outlook.files, outlook.state, user.places.state)
    service = installed.state.main_pid if installed.state is not None and installed.running else None
    refuse_living(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake(), stopped=service)


def _other_owner(outlook: Outlook, installed: Installed) -> int | None:
    """The pid of an owner that is not the service; None when there is none."""
    if outlook.state is None:
        return None
    owner = look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake()).owner
    pid = None if owner is None else owner.claim.card.process.pid
    return None if installed.state is not None and pid == installed.state.main_pid else pid


def _say_what_stops(outlook: Outlook, other: int | None, *, now: bool) -> None:
    """`other` is the pid of an owner that is not the service."""
    if other is not None:
        say(f"            no routine stops: the agent with pid {other} owns, and goes on")
        return
    try:
        summaries = [] if outlook.ledger is None else outlook.ledger.summaries()
    except AnkitaError as fault:
        say(f"note        it cannot be said which routines stop: {fault.what}")
        return
    for summary in summaries:
        _say_routine(outlook, summary)
    running = [summary.account.in_force.routine for summary in summaries if summary.running is not None]
    if running and now:
        say(f"stopping    {', '.join(map(printable, running))}, which runs now")
    elif running:
        them = ", ".join(map(printable, running))
        say(f"waiting     for {them} to end, 45 s at most; at once: ankita-agent stop --now")


def _say_routine(outlook: Outlook, summary: RoutineSummary) -> None:
    if not summary.account.in_force.enabled:
        return
    now = outlook.clock.now()
    slot = next_slot_of(summary, now, owned=False)
    when = "" if slot is None else f", which would have run next at {near_time(format_instant(slot), now)}"
    say(f"stops       {printable(summary.account.in_force.routine)}{when}")


def _purge(user: ThisUser, installed: Installed) -> None:
    try:
        with looking(user.places) as outlook:
            state, files = outlook.state, outlook.files
            if state is None:
                return
            refuse_living(files, state, look_at_processes(), outlook.clock.awake())
        purge(files, user.places.state, say)  # the ledger is closed by now
    except SomeoneElseOwns as fault:  # one that came up meanwhile
        if not installed.nothing:
            fault.now = f"the service is removed; {fault.now}"
        raise


def _say_what_stays(user: ThisUser, installed: Installed, *, and_state: bool) -> None:
    if os.path.lexists(user.places.routines):
        say(f"kept        {user.places.routines}, which nothing but you removes")
    if not and_state and os.path.lexists(user.places.state):
        say(f"kept        {user.places.state}, the history; without it: ankita-agent uninstall --purge")
    if not installed.nothing and login_manager(user).lingers():
        say("kept        lingering, which other services of yours may need; without it: loginctl disable-linger")
    if installed.own:
        say("kept        what you made yourself; without it:")
        say(f"            rm -r {' '.join(map(shlex.quote, installed.own))}")


def _say_what_remains(installed: Installed) -> int:
    if installed.trouble is None or installed.nothing:
        return 0
    fault = installed.trouble
    say(f"note        {fault.what}" + (f": {fault.fact}" if fault.fact else ""), err=True)
    say("            a service that runs goes on until its manager ends; once that can be asked:", err=True)
    say("            systemctl --user daemon-reload; systemctl --user stop ankita-agent", err=True)
    return 1
