"""`ankita-agent doctor`."""

import os
from collections.abc import Sequence
from typing import Final

import click

from ankita_agent import __version__
from ankita_agent.app.account import AccountTold, Untold
from ankita_agent.app.doctor import Mended, mend_all
from ankita_agent.app.examination import Examination
from ankita_agent.cli.output import json_option, local_time, print_json, printable, say
from ankita_agent.core.findings import Finding, Severity
from ankita_agent.core.instants import Instant, format_instant
from ankita_agent.wiring.doctor import examine_user, find_patient, mending

_WHY_UNTOLD: Final = {
    Untold.UNREADABLE: "this version or machine cannot read its schedule or time zone",
    Untold.NO_RULES: "the ledger does not say by which rules of its time zone; the next start of the agent adds them",
    Untold.OTHER_RULES: "its time zone has other rules here than those by which the agent reckoned them",
}
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Mend what can be mended without ending a run or undoing what you chose.")
@json_option
def command(fix: bool, as_json: bool) -> int:
    """Say what is wrong with the service and around it, and how to mend it.

    It looks at the service, the way to its manager, this shell, the routines, the state and the machine, and counts
    the slots of each schedule against the rows of the ledger. Without --fix it changes nothing.

    \b
    Exit status: 0 there is nothing to mend, 1 there is.

    \b
    Example:
      ankita-agent doctor --fix
    """
    user, misled = find_patient(os.environ)
    if fix and misled is None:
        mended, examination = mend_all(lambda: examine_user(user), mending(user, _tell_step))
    else:
        mended, examination = [], examine_user(user, misled)
    if as_json:
        print_json(_document(mended, examination))
    else:
        _print(mended, examination)
    return 0 if examination.healthy else 1


def _is_mended(mended: Mended, examination: Examination) -> bool:
    return mended.fault is None and all(left.id is not mended.finding.id for left in examination.findings)


def _tell_step(line: str) -> None:
    say(line, err=True)


def _print(mended: Sequence[Mended], examination: Examination) -> None:
    for each in mended:
        if _is_mended(each, examination):
            _line("mended", "green", each.finding.what)
        elif each.fault is not None:
            _line("not mended", "red", each.finding.what)
            say("    " + str(each.fault).replace("\n  ", "\n    "))
    for severity in Severity:
        for finding in examination.findings:
            if finding.severity is severity:
                _print_finding(finding)
    _print_account(examination.account)
    matters = sum(finding.matters for finding in examination.findings)
    by_itself = sum(finding.matters and finding.mend is not None for finding in examination.findings)
    those = f"{by_itself} of them" if by_itself < matters else "it" if matters == 1 else "them"
    fix = f"; ankita-agent doctor --fix mends {those}" if by_itself and not mended else ""
    click.echo(f"{matters} to mend{fix}" if matters else "nothing to mend")


def _print_finding(finding: Finding) -> None:
    _line(finding.severity.value, _COLOURS[finding.severity], finding.what)
    if finding.fact:
        say(f"    {finding.fact}")
    on_its_own = finding.command and f"`{finding.command}`" not in finding.do
    if finding.do:
        say(f"    {finding.do}{':' if on_its_own else ''}")
    if on_its_own:
        say(f"        {finding.command}")


def _line(word: str, colour: str, text: str) -> None:
    click.echo(f"{click.style(f'{word}:', fg=colour, bold=True)} {printable(text, newlines=True)}")


def _print_account(account: AccountTold | None) -> None:
    if account is None:
        return
    for name, reason in account.untold.items():
        say(f"account: nothing can be told of the slots of {name}: {_WHY_UNTOLD[reason]}")
    if account.since is None or account.until is None:
        if not account.untold:
            say("account: nothing can be told: the ledger has no routine in force with slots that a clock tells")
        return
    count = len(account.reckonings)
    routines = f"{count} routine" + ("" if count == 1 else "s")
    told = "none doubled, none left out" if account.right else "not all of them once"
    slots = f"{account.slots} slot" + ("" if account.slots == 1 else "s")
    since = local_time(account.since) + ("" if account.one_beginning else " or later")
    say(f"account: {slots} of {routines} since {since} until {local_time(account.until)}: {told}")


def _document(mended: Sequence[Mended], examination: Examination) -> dict[str, object]:
    return {
        "version": __version__,
        "healthy": examination.healthy,
        "findings": [_finding_document(finding) for finding in examination.findings],
        "mended": [_mended_document(each, _is_mended(each, examination)) for each in mended],
        "account": None if examination.account is None else _account_document(examination.account),
    }


def _mended_document(mended: Mended, done: bool) -> dict[str, object]:
    return {"id": mended.finding.id.value, "done": done, "error": None if mended.fault is None else str(mended.fault)}


def _finding_document(finding: Finding) -> dict[str, object]:
    return {
        "id": finding.id.value,
        "severity": finding.severity.value,
        "what": finding.what,
        "fact": finding.fact or None,
        "do": finding.do or None,
        "command": finding.command or None,
        "fix": finding.mend is not None,
    }


def _account_document(account: AccountTold) -> dict[str, object]:
    def places(found: Sequence[tuple[str, Instant]]) -> list[dict[str, str]]:
        return [{"routine": routine, "slot": format_instant(slot)} for routine, slot in found]

    return {
        "slots": account.slots,
        "since": None if account.since is None else format_instant(account.since),
        "doubled": places(account.doubled),
        "left_out": places(account.left_out),
        "not_counted": list(account.untold),
        "routines": [
            {
                "name": name,
                "slots": each.slots,
                "since": format_instant(each.since),
                "until": format_instant(each.until),
            }
            for name, each in account.reckonings.items()
        ],
    }
