"""The command `ankita-agent`: finds the command asked for, runs it, and turns faults into text and exit status."""

import importlib
import os
import signal
import sys
import traceback
from difflib import get_close_matches

import click

from ankita_agent import __version__
from ankita_agent.cli.output import (
    CannotPrint,
    end_quietly,
    flush_or_forget,
    hold_output_faults,
    occupy_standard_descriptors,
    say_if_possible,
    tell_output_from_input,
)
from ankita_agent.core.errors import AnkitaError, CannotWriteState

COMMANDS = {
    "run": "Run the agent here: it fires the routines.",
    "status": "How agent and routines are doing.",
    "list": "All routines: next, left, last, outcome.",
    "next": "The slots to come.",
    "history": "How slots ended, newest first.",
    "logs": "The output of a run.",
    "trigger": "Run a routine now.",
    "check": "Say what is wrong with a routines.yaml.",
    "doctor": "Say what is wrong with service, shell and machine.",
    "start": "Start the service.",
    "stop": "Stop the service, and wait for what it runs.",
    "restart": "Stop the service, and start it again.",
    "install": "Make the agent a service of yours.",
    "uninstall": "Take that service away.",
}
"""Each is found in the module cli/<name>.py and imported only when used: a command must start fast."""

_HEEDS_SUDO = ("install", "uninstall", "doctor")
"""What these say of sudo(8) is their own."""

_FINISH_FIRST = ("install", "uninstall", "start", "stop", "restart", "doctor", "trigger")
"""These change things, and are done before a fault of the output is told."""

_ANSWERS = {
    "timers": "the list of what comes next is: ankita-agent list",
    "ps": "what runs now is in: ankita-agent status",
    "reload": "nothing to do: a saved routines.yaml is in force within two seconds; see: ankita-agent status",
    "validate": "to see what is wrong with a file: ankita-agent check",
    "show": "to see one routine: ankita-agent status ROUTINE",
    "enable": "write `enabled: true` in routines.yaml; for the service: systemctl --user enable ankita-agent",
    "disable": "write `enabled: false` in routines.yaml; for the service: systemctl --user disable ankita-agent",
    "log": "the output of a run: ankita-agent logs ROUTINE",
    "cancel": "no command ends a single run yet; with all that runs: ankita-agent stop --now",
    "kill": "no command ends a single run yet; with all that runs: ankita-agent stop --now",
    "pause": "write `enabled: false` for the routine in routines.yaml",
    "resume": "write `enabled: true` for the routine in routines.yaml",
    "edit": "edit the file that `ankita-agent status` names, and look at it with: ankita-agent check",
    "version": "see: ankita-agent --version",
}
"""What fingers type, and what was meant."""


class Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ankita_agent.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say what was probably meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = [each for each in COMMANDS if each.startswith(name)] or get_close_matches(name, COMMANDS, n=1)
            hint = _ANSWERS.get(name) or (
                f"did you mean: ankita-agent {near[0]}" if near else "see: ankita-agent --help"
            )
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ankita-agent")
@click.pass_context
def ankita_agent(context: click.Context) -> None:
    """Run your routines on time, each slot at most once, and account for every one.

    \b
    Example:
      ankita-agent check && ankita-agent run
    """
    user = os.environ.get("SUDO_USER", "")
    if os.getuid() == 0 and user not in ("", "root") and context.invoked_subcommand not in _HEEDS_SUDO:
        say_if_possible(f"by sudo, this is about the agent of root; for that of {user}: without sudo")


def main() -> None:
    """Run the command line and exit with its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, every child seems to have succeeded: wait(2)
    occupy_standard_descriptors()
    tell_output_from_input()
    code = run_command(sys.argv[1:])
    flush_or_forget()
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit status; every fault has been told on stderr then."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    unwritten = hold_output_faults() if _changes_things(arguments) else []
    code = _run(arguments)
    return _unwritten_by_then(unwritten, arguments[0], code) if unwritten else code


def _changes_things(arguments: list[str]) -> bool:
    """Whether a command line does more than show something."""
    if not arguments or arguments[0] not in _FINISH_FIRST or {"--help", "-h", "--dry-run"} & set(arguments):
        return False
    return arguments[0] != "doctor" or "--fix" in arguments


def _run(arguments: list[str]) -> int:
    try:
        result = ankita_agent.main(arguments, prog_name="ankita-agent", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as fault:
        _show(fault)
        return 2
    except click.Abort:
        return 130
    except AnkitaError as fault:
        say_if_possible(f"ankita-agent: {fault}")
        return fault.exit_code
    except (BrokenPipeError, SystemExit):  # click ends so itself when the reader of a pipe went away
        end_quietly()
        return 128 + signal.SIGPIPE
    except CannotPrint as error:
        return _unwritten(error)
    except OSError as error:
        return _unread(error)
    except Exception as fault:  # noqa: BLE001 - the last line of defence turns a bug into a report
        return _our_fault(fault)
    return result if isinstance(result, int) else 0


def _show(fault: click.ClickException) -> None:
    if sys.stderr is None:  # closed from the start; click would take stdout instead
        return
    try:
        fault.show()
    except OSError:
        pass


def _unwritten(error: CannotPrint) -> int:
    """What was to be printed could not be: a full disk behind a redirection, a terminal that went away."""
    say_if_possible(f"ankita-agent: cannot write the output: {error.strerror or error}")
    end_quietly()
    return 1


def _unwritten_by_then(faults: list[OSError], command: str, code: int) -> int:
    """What was to be done has been done, or its own fault was told with `code`; some of the output is lost."""
    fault = faults[0]
    done = "" if code else f"\n  {command} has done all that it was to do; how it is now: ankita-agent status"
    say_if_possible(f"ankita-agent: cannot write the output: {fault.strerror or fault}{done}")
    end_quietly()
    return code or (128 + signal.SIGPIPE if isinstance(fault, BrokenPipeError) else 1)


def _unread(error: OSError) -> int:
    """A file or the system refused what no command expects to be refused."""
    name = repr(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "a file"
    fact = error.strerror or str(error)
    say_if_possible(f"ankita-agent: cannot read {name}: {fact}\n  nothing that the ledger holds is lost")
    return CannotWriteState.exit_code


def _our_fault(fault: Exception) -> int:
    place = traceback.extract_tb(fault.__traceback__)[-1]
    say_if_possible(
        f"ankita-agent: a fault of ankita-agent itself: {type(fault).__name__}: {fault}\n"
        f"  observed in {os.path.basename(place.filename)}:{place.lineno}, version {__version__}\n"
        "  nothing that the ledger holds is lost\n"
        "  see all of it by setting ANKITA_DEBUG=1, and please report it"
    )
    if os.environ.get("ANKITA_DEBUG"):
        traceback.print_exception(fault)
    return 70
