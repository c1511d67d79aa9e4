"""`ankita-agent uninstall`."""

import os
import shlex

import click

from ankita_agent.app.inspection import look
from ankita_agent.app.installation import refuse_sudo
from ankita_agent.app.purge import purge, refuse_living
from ankita_agent.app.queries import next_slot_of
from ankita_agent.app.removal import Installed
from ankita_agent.cli.output import near_time, printable, say
from ankita_agent.core.errors import AnkitaError
from ankita_agent.core.instants import format_instant
from ankita_agent.core.rows import RoutineSummary
from ankita_agent.wiring.managers import login_manager
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.service import make_removal
from ankita_agent.wiring.user import ThisUser, find_this_user


@click.command("uninstall")
@click.option("--purge", "and_state", is_flag=True, help="Remove the state too: history and the output of runs.")
def command(and_state: bool) -> int:
    """Stop the service and take it away; routines.yaml stays, and so does all that you wrote yourself.

    Runs get the time to end that a stop gives them. It says which routines stop, and when each would have run
    next.

    \b
    Exit status: 0 done, or nothing to do, 1 the service manager could not be asked
    or the service did not stop, 73 a file cannot be removed, 75 with --purge, an
    agent lives.

    \b
    Example:
      ankita-agent uninstall
    """
    refuse_sudo(os.getuid(), os.environ.get("SUDO_UID", ""), "uninstall")
    user = find_this_user(dict(os.environ))
    removal = make_removal(user, say)
    installed = removal.look()
    with looking(user.places) as outlook:
        if and_state:
            _refuse_other_agents(outlook, installed)
        if not installed.nothing:
            _say_what_stops(outlook, installed)
    if installed.nothing:
        say("nothing to do: there is no service of ankita-agent here")
    else:
        if installed.running:
            removal.stop()
        removal.carry_out(installed)
    if and_state:
        _purge(user)
    _say_what_stays(user, installed, and_state=and_state)
    return _say_what_remains(installed)


def _refuse_other_agents(outlook: Outlook, installed: Installed) -> None:
    """With --purge: no agent may live, but for the service, which is going to be stopped."""
    if outlook.state is None or (installed.running and _other_owner(outlook, installed) is None):
        return
    refuse_living(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())


def _other_owner(outlook: Outlook, installed: Installed) -> int | None:
    """The pid of an owner that is not the service; None when there is none."""
    if outlook.state is None:
        return None
    owner = look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake()).owner
    pid = None if owner is None else owner.claim.card.process.pid
    return None if installed.state is not None and pid == installed.state.main_pid else pid


def _say_what_stops(outlook: Outlook, installed: Installed) -> None:
    if not installed.running:
        return
    other = _other_owner(outlook, installed)
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
    if running:
        say(f"waiting     for {', '.join(map(printable, running))} to end, 45 s at most")


def _say_routine(outlook: Outlook, summary: RoutineSummary) -> None:
    if not summary.account.in_force.enabled:
        return
    now = outlook.clock.now()
    slot = next_slot_of(summary, now, owned=False)
    when = "" if slot is None else f", which would have run next at {near_time(format_instant(slot), now)}"
    say(f"stops       {printable(summary.account.in_force.routine)}{when}")


def _purge(user: ThisUser) -> None:
    with looking(user.places) as outlook:
        state, files = outlook.state, outlook.files
        if state is None:
            return
        refuse_living(files, state, look_at_processes(), outlook.clock.awake())
    purge(files, user.places.state, say)  # the ledger is closed by now


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
