"""What doctor finds of the service and the way to it: the facts that give it, those that do not, and its command."""

from dataclasses import replace
from typing import Any, Final

import pytest

from ankita_agent.core.elsewhere import Elsewhere
from ankita_agent.core.findings import Finding, FindingId, Mend, Severity
from ankita_agent.core.install_plan import Change, FileChange, judge_file
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.reaching import Place, silent, unreachable
from ankita_agent.core.service import Activity, UnitState, Unreachable
from ankita_agent.core.service_diagnosis import judge_service
from ankita_agent.core.session_diagnosis import Session, judge_session, judge_whose
from ankita_agent.core.unit_diagnosis import ServiceSeen, UnitCopy
from ankita_agent.core.unit_file import ServiceFacts, render_service

HOME: Final = "/home/ann"
PATH: Final = f"{HOME}/.local/share/systemd/user/ankita-agent.service"
PROGRAM: Final = ("/opt/py/bin/python", "-P", "-m", "ankita_agent", "run", "--standby")
TEMPLATE: Final = "[Unit]\nDescription=x\n\n[Service]\nExecStart=x\n\n[Install]\nWantedBy=default.target\n"
ANN: Final = Place("ann", 4242)
SESSION: Final = Session(ANN, "/run/user/4242", {}, False, None, True)
UP: Final = UnitState(
    load="loaded",
    file="enabled",
    activity=Activity.ACTIVE,
    sub="running",
    fragment=PATH,
    drop_ins=(),
    needs_reload=False,
    main_pid=7,
    restarts=0,
    result="success",
    exit_status=None,
    status_text="",
)


def unit(version: str = "0.1", program: tuple[str, ...] = PROGRAM) -> str:
    """A unit file that some version wrote."""
    return render_service(TEMPLATE, ServiceFacts(program, {}, version, 252))


WELL: Final = ServiceSeen(
    state=UP,
    file=judge_file(PATH, unit(), unit()),
    others=(),
    program_there=True,
    program=PROGRAM,
    controllers=frozenset({"cpu", "memory"}),
    journal="journalctl --user -u ankita-agent -n 30 --no-pager",
)


def of_service(seen: ServiceSeen = WELL, behind: str | None = None, **state: object) -> dict[FindingId, Finding]:
    """What is found of a service in that state."""
    changed = replace(seen, state=replace(seen.state, **state))  # type: ignore[arg-type]
    return {each.id: each for each in judge_service(changed, behind, "0.1")}


def of_session(session: Session) -> dict[FindingId, Finding]:
    """What is found of a session."""
    return {each.id: each for each in judge_session(session)}


# --- the session --------------------------------------------------------------------------------------


def test_an_ordinary_session_and_a_service_that_is_well_give_no_findings() -> None:
    assert of_session(SESSION) == {}
    assert of_service() == {}
    assert of_service(behind="0.1") == {}


def test_root_by_sudo_is_told_and_root_itself_is_not() -> None:
    by_sudo = Place("root", 0, sudo_user="ann")
    [found] = judge_whose(by_sudo, has_agent=False)
    assert (found.id, found.severity) == (FindingId.ROOT_BY_SUDO, Severity.WARNING)
    assert "not about that of ann" in found.what
    assert [each.severity for each in judge_whose(by_sudo, has_agent=True)] == [Severity.NOTE]
    for place in (Place("root", 0), Place("root", 0, sudo_user="root"), Place("ann", 4242, sudo_user="bob")):
        assert list(judge_whose(place, has_agent=False)) == []


@pytest.mark.parametrize("reason", [each for each in Unreachable if each is not Unreachable.NO_SYSTEMD])
def test_a_manager_that_cannot_be_asked_is_an_error_with_its_command(reason: Unreachable) -> None:
    fault = unreachable(reason, ANN, "no socket")
    found = of_session(replace(SESSION, fault=fault))[FindingId.MANAGER_UNREACHABLE]
    assert (found.severity, found.fact, found.do) == (Severity.ERROR, "no socket", fault.do)
    assert found.command in fault.do


def test_no_systemd_at_all_is_a_note_that_says_what_works() -> None:
    found = of_session(replace(SESSION, fault=unreachable(Unreachable.NO_SYSTEMD, ANN, "x"), lingers=None))
    assert list(found) == [FindingId.MANAGER_UNREACHABLE]
    told = found[FindingId.MANAGER_UNREACHABLE]
    assert (told.severity, told.what) == (Severity.NOTE, "there is no systemd here, and so no service")
    assert "`ankita-agent run` works without one" in told.do
    assert len(told.do) < 120


def test_a_manager_that_does_not_answer_is_an_error() -> None:
    found = of_session(replace(SESSION, fault=silent("state", Duration(2 * SECOND))))
    assert list(found) == [FindingId.MANAGER_SILENT]
    assert found[FindingId.MANAGER_SILENT].severity is Severity.ERROR


def test_variables_of_another_user_are_told_with_unset_and_not_what_they_lack() -> None:
    foreign = {"XDG_RUNTIME_DIR": "/run/user/0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus"}
    found = of_session(replace(SESSION, foreign=foreign, unset=True))
    assert list(found) == [FindingId.FOREIGN_SESSION]
    assert found[FindingId.FOREIGN_SESSION].command == "unset XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS"
    assert "XDG_RUNTIME_DIR=/run/user/0" in found[FindingId.FOREIGN_SESSION].what


def test_a_shell_without_a_runtime_directory_is_a_note_where_there_is_a_manager() -> None:
    found = of_session(replace(SESSION, unset=True))
    assert found[FindingId.SESSION_UNSET].command == "export XDG_RUNTIME_DIR=/run/user/4242"
    assert not found[FindingId.SESSION_UNSET].matters
    without = replace(SESSION, unset=True, fault=unreachable(Unreachable.NO_SOCKET, ANN, "x"))
    assert FindingId.SESSION_UNSET not in of_session(without)


@pytest.mark.parametrize("reason", [None, *Unreachable])
def test_lingering_that_is_off_is_told_where_it_would_help(reason: Unreachable | None) -> None:
    fault = None if reason is None else unreachable(reason, ANN, "x")
    found = of_session(replace(SESSION, fault=fault, lingers=False))
    helps = reason in (None, Unreachable.NO_SOCKET)  # without a runtime directory the manager's own finding says it
    assert (FindingId.LINGERING_OFF in found) == helps
    if helps:
        finding = found[FindingId.LINGERING_OFF]
        assert (finding.command, finding.mend) == ("sudo loginctl enable-linger ann", None)
        assert finding.severity is Severity.NOTE


def test_lingering_that_nobody_can_tell_is_a_note() -> None:
    found = of_session(replace(SESSION, lingers=None))
    assert [(each.id, each.severity) for each in found.values()] == [(FindingId.NOT_ASKED, Severity.NOTE)]


# --- the service --------------------------------------------------------------------------------------


def changed(before: str | None, after: str, **seen: object) -> ServiceSeen:
    """The service with that unit file, where this version would write another."""
    return replace(WELL, file=judge_file(PATH, before, after), **seen)  # type: ignore[arg-type]


NOT_LOADED: Final = {"load": "not-found", "file": "", "fragment": "", "activity": Activity.INACTIVE}


def test_a_service_that_is_not_installed_is_told_alone() -> None:
    found = of_service(changed(None, unit()), **NOT_LOADED)
    assert list(found) == [FindingId.NOT_INSTALLED]
    assert (found[FindingId.NOT_INSTALLED].command, found[FindingId.NOT_INSTALLED].mend) == (
        "ankita-agent install",
        Mend.INSTALL,
    )


def test_a_unit_file_that_was_never_read_needs_a_reload_alone() -> None:
    found = of_service(WELL, **NOT_LOADED)
    assert list(found) == [FindingId.NOT_READ_AGAIN]
    assert found[FindingId.NOT_READ_AGAIN].command == "systemctl --user daemon-reload"
    assert found[FindingId.NOT_READ_AGAIN].mend is Mend.RELOAD


def test_a_masked_service_is_told_alone_and_never_unmasked_by_itself() -> None:
    for state, option in (({"load": "masked"}, ""), ({"file": "masked-runtime"}, " --runtime")):
        found = of_service(WELL, activity=Activity.INACTIVE, **state)
        assert list(found) == [FindingId.MASKED]
        assert found[FindingId.MASKED].command == f"systemctl --user{option} unmask ankita-agent"
        assert found[FindingId.MASKED].mend is None


@pytest.mark.parametrize(
    ("seen", "command", "mend"),
    [
        (changed(unit() + "ExecStart=/x\n", unit()), "ankita-agent install", Mend.INSTALL),
        (changed(unit("0.0.9"), unit()), "ankita-agent install", Mend.INSTALL),
        (WELL, "systemd-analyze --user verify ankita-agent.service", None),  # what is right cannot be written anew
    ],
)
def test_a_unit_that_systemd_cannot_use_is_told_and_not_that_it_does_not_run(
    seen: ServiceSeen, command: str, mend: Mend | None
) -> None:
    found = of_service(replace(seen, complaints=("too many",)), load="bad-setting", activity=Activity.INACTIVE)
    assert list(found) == [FindingId.UNIT_UNUSABLE]
    told = found[FindingId.UNIT_UNUSABLE]
    assert (told.fact, told.command, told.mend) == ("it says: too many", command, mend)


@pytest.mark.parametrize(
    ("complaints", "put_aside"),
    [((), ["/a/x.conf", "/b/y z.conf"]), (("/b/y z.conf:3: Unknown key",), ["/b/y z.conf"])],
)
def test_a_drop_in_that_systemd_cannot_use_is_named_with_what_systemd_says_and_put_aside(
    complaints: tuple[str, ...], put_aside: list[str]
) -> None:
    seen = replace(WELL, complaints=complaints, own_drop_ins=frozenset({"/b/y z.conf"}))
    found = of_service(seen, load="bad-setting", drop_ins=("/a/x.conf", "/b/y z.conf"))
    assert list(found) == [FindingId.DROP_IN_UNUSABLE]
    told = found[FindingId.DROP_IN_UNUSABLE]
    assert told.mend is None
    assert all(path in told.what for path in put_aside)
    moves = {"/a/x.conf": "sudo mv /a/x.conf /a/x.conf.aside", "/b/y z.conf": "mv '/b/y z.conf' '/b/y z.conf.aside'"}
    assert told.command.split(" && ") == [*map(moves.__getitem__, put_aside), "systemctl --user daemon-reload"]


def test_drop_ins_of_ours_are_neither_told_nor_blamed() -> None:
    hardening = FileChange("/u/hardening.conf", "x", "x", Change.UNCHANGED)
    ours = replace(WELL, others=(hardening,))
    assert of_service(ours, drop_ins=(hardening.path,)) == {}
    assert list(of_service(ours, load="bad-setting", drop_ins=(hardening.path,))) == [FindingId.UNIT_UNUSABLE]
    edited = replace(WELL, others=(replace(hardening, change=Change.EDITED),))
    assert list(of_service(edited, drop_ins=(hardening.path,))) == [FindingId.DROP_IN]


@pytest.mark.parametrize("state", [{"needs_reload": True}, {"load": "not-found", "file": "", "fragment": ""}])
def test_a_unit_file_that_is_gone_under_a_service_that_runs_is_told_alone(state: dict[str, Any]) -> None:
    found = of_service(changed(None, unit(), program_there=False), **state)
    assert list(found) == [FindingId.UNIT_GONE]
    told = found[FindingId.UNIT_GONE]
    assert (told.what, told.command, told.mend) == (
        "the unit file of the service is gone: it runs on, and will not start again",
        "ankita-agent install",
        Mend.INSTALL,
    )


def test_of_files_that_nobody_could_read_nothing_is_said() -> None:
    seen = replace(WELL, file=FileChange(PATH, None, None, Change.UNCHANGED), program_there=False, legible=False)
    assert of_service(seen) == {}
    assert of_service(seen, **NOT_LOADED) == {}


def test_a_unit_whose_program_stands_in_a_drop_in_is_not_said_to_start_nothing() -> None:
    text = "[Service]\nType=notify\n"
    assert list(of_service(changed(text, text, program_there=False))) == []


@pytest.mark.parametrize(
    ("seen", "id_", "mend"),
    [
        (changed(unit("0.0.9"), unit()), FindingId.UNIT_OUTDATED, Mend.INSTALL),
        (changed(unit() + "# mine\n", unit()), FindingId.UNIT_EDITED, None),
        (changed("[Service]\nExecStart=/opt/py/bin/python\n", unit()), FindingId.UNIT_EDITED, None),
        (changed(unit(program=("/old/python",)), unit()), FindingId.PROGRAM_OTHER, None),
        (changed(unit(program=("/old/python",)), unit(), program_there=False), FindingId.PROGRAM_GONE, Mend.INSTALL),
        (changed(unit() + "# mine\n", unit(), program_there=False), FindingId.PROGRAM_GONE, Mend.INSTALL),
        (
            replace(WELL, others=(FileChange("/x/app-ankita.slice", None, "x", Change.NEW),)),
            FindingId.UNIT_OUTDATED,
            Mend.INSTALL,
        ),
    ],
)
def test_a_unit_file_that_is_not_as_it_should_be_gives_one_finding(
    seen: ServiceSeen, id_: FindingId, mend: Mend | None
) -> None:
    found = of_service(seen, needs_reload=True)
    assert list(found) == [id_]
    assert (found[id_].command, found[id_].mend) == ("ankita-agent install", mend)


def test_a_unit_file_that_was_changed_since_systemd_read_it_needs_a_reload() -> None:
    found = of_service(needs_reload=True)
    assert list(found) == [FindingId.NOT_READ_AGAIN]
    by_others = of_service(changed(None, unit()), needs_reload=True, fragment="/usr/lib/systemd/user/x.service")
    assert list(by_others) == [FindingId.NOT_READ_AGAIN]


@pytest.mark.parametrize(("own", "command"), [(True, "mv"), (False, "sudo mv")])
def test_a_copy_that_counts_for_more_is_told_with_what_puts_it_aside(own: bool, command: str) -> None:
    copy = UnitCopy("/etc/a b/ankita-agent.service", own)
    found = of_service(replace(WELL, copies_before=(copy,)), fragment=copy.path)
    assert list(found) == [FindingId.SECOND_COPY]
    assert found[FindingId.SECOND_COPY].command == (
        f"{command} '/etc/a b/ankita-agent.service' '/etc/a b/ankita-agent.service.aside' "
        "&& systemctl --user daemon-reload"
    )


def test_a_copy_that_systemd_found_and_could_not_read_is_told_in_place_of_a_reload() -> None:
    seen = replace(WELL, copies_before=(UnitCopy("/etc/systemd/user/ankita-agent.service", False),))
    assert list(of_service(seen, **NOT_LOADED)) == [FindingId.SECOND_COPY]


def test_a_copy_that_counts_for_less_is_a_note_and_a_link_of_ours_or_a_mask_is_none() -> None:
    found = of_service(replace(WELL, copies_behind=(UnitCopy("/usr/lib/systemd/user/ankita-agent.service", False),)))
    assert [(each.id, each.severity) for each in found.values()] == [(FindingId.SECOND_COPY, Severity.NOTE)]
    for link in (PATH, "/dev/null"):
        assert of_service(replace(WELL, copies_before=(UnitCopy("/x/ankita-agent.service", True, link),))) == {}


def test_a_unit_that_somebody_else_installed_is_a_note() -> None:
    path = "/usr/lib/systemd/user/ankita-agent.service"
    seen = replace(changed(None, unit()), copies_behind=(UnitCopy(path, False),))
    found = of_service(seen, fragment=path)
    assert [(each.id, each.matters) for each in found.values()] == [(FindingId.UNIT_OF_OTHERS, False)]


def test_a_system_service_of_the_name_is_told() -> None:
    copy = UnitCopy("/etc/systemd/system/ankita-agent.service", False)
    found = of_service(replace(WELL, system_copies=(copy,)))
    assert list(found) == [FindingId.SYSTEM_COPY]
    assert found[FindingId.SYSTEM_COPY].command.startswith("sudo systemctl disable --now ankita-agent && sudo mv ")


@pytest.mark.parametrize("word", ["disabled", "enabled-runtime", "linked", "linked-runtime"])
def test_a_service_that_is_not_enabled_is_told(word: str) -> None:
    found = of_service(file=word)
    assert list(found) == [FindingId.NOT_ENABLED]
    assert (found[FindingId.NOT_ENABLED].command, found[FindingId.NOT_ENABLED].mend) == (
        "systemctl --user enable ankita-agent",
        Mend.ENABLE,
    )


@pytest.mark.parametrize("word", ["enabled", "static", "generated"])
def test_a_service_that_starts_by_itself_or_by_another_is_not_told_to_be_enabled(word: str) -> None:
    assert of_service(file=word) == {}


def test_a_service_that_does_not_run_is_told_with_start() -> None:
    found = of_service(activity=Activity.INACTIVE, sub="dead", main_pid=None)
    assert [(each.id, each.command, each.mend) for each in found.values()] == [
        (FindingId.NOT_ACTIVE, "ankita-agent start", Mend.START)
    ]


@pytest.mark.parametrize(
    ("result", "status", "by_signal", "fact", "mend"),
    [
        ("exit-code", 1, False, "exit-code, exit status 1", Mend.START),
        ("exit-code", 203, False, "could not be executed", Mend.START),
        ("signal", 9, True, "killed by signal 9", Mend.START),
        ("signal", 78, True, "killed by signal 78", Mend.START),
        ("timeout", None, False, "systemd says timeout", Mend.START),
        ("exit-code", 78, False, "exit status 78", None),
    ],
)
def test_a_failed_service_is_told_with_how_it_ended(
    result: str, status: int | None, by_signal: bool, fact: str, mend: Mend | None
) -> None:
    found = of_service(activity=Activity.FAILED, result=result, exit_status=status, by_signal=by_signal)
    assert list(found) == [FindingId.FAILED]
    assert fact in found[FindingId.FAILED].fact
    assert found[FindingId.FAILED].mend is mend
    assert found[FindingId.FAILED].command.endswith("ankita-agent start")


def test_a_service_that_ends_again_and_again_is_an_error_and_one_that_starts_is_none() -> None:
    found = of_service(activity=Activity.ACTIVATING, sub="auto-restart", restarts=9, result="exit-code", exit_status=1)
    assert list(found) == [FindingId.RESTARTING]
    assert found[FindingId.RESTARTING].what.endswith("starts it again, 9 times so far")
    for restarts, ending in ((0, "starts it again"), (1, "starts it again, once so far")):
        again = of_service(activity=Activity.ACTIVATING, sub="auto-restart", restarts=restarts)
        assert again[FindingId.RESTARTING].what.endswith(ending)
    assert of_service(activity=Activity.ACTIVATING, sub="start") == {}


@pytest.mark.parametrize(("restarts", "told"), [(0, False), (2, False), (3, True)])
def test_a_service_that_was_brought_back_often_is_a_note(restarts: int, told: bool) -> None:
    found = of_service(restarts=restarts)
    assert (FindingId.BROUGHT_BACK in found) == told
    assert not any(each.matters for each in found.values())


def test_an_agent_of_another_version_than_the_installed_one_is_told_with_restart() -> None:
    found = of_service(behind="0.0.9")
    assert [(each.id, each.command, each.mend) for each in found.values()] == [
        (FindingId.VERSION_BEHIND, "ankita-agent restart", None)
    ]
    other = changed(unit(program=("/old/python",)), unit())
    assert list(of_service(other, behind="0.0.9")) == [FindingId.PROGRAM_OTHER]  # which a restart does not change


# --- a shell with directories of its own ---------------------------------------------------------------

BESIDE: Final = (
    Elsewhere("ANKITA_STATE_DIR", "/s", "/run/s", usual=True),
    Elsewhere("ANKITA_CONFIG_DIR", "/c", "/x", False),
)


@pytest.mark.parametrize(
    ("seen", "state", "verb"),
    [
        (changed(None, unit(), program_there=False), {"needs_reload": True}, "install"),
        (changed(unit("0.0.9"), unit()), {}, "install"),
        (changed(unit() + "# mine\n", unit()), {}, "install"),
        (changed(unit(program=("/old/python",)), unit(), program_there=False), {}, "install"),
        (WELL, {"activity": Activity.INACTIVE}, "start"),
        (WELL, {"activity": Activity.FAILED, "result": "exit-code", "exit_status": 1}, "start"),
        (WELL, {"behind": "0.0.9"}, "restart"),
    ],
)
def test_what_is_advised_beside_a_service_of_other_directories_leaves_it_these(
    seen: ServiceSeen, state: dict[str, Any], verb: str
) -> None:
    behind = state.pop("behind", None)
    beside = replace(seen, elsewhere=BESIDE, set_here=frozenset({"ANKITA_STATE_DIR"}))
    [found] = of_service(beside, behind, **state).values()
    assert found.command == f"env -u ANKITA_STATE_DIR ANKITA_CONFIG_DIR=/c ankita-agent {verb}"


def test_a_copy_with_directories_of_its_own_does_not_offer_itself_to_the_service() -> None:
    other = changed(unit("0.0.9", program=("/old/python",)), unit(), elsewhere=BESIDE)
    assert of_service(other, behind="0.0.9") == {}


def test_each_drop_in_is_a_note() -> None:
    found = list(judge_service(replace(WELL, state=replace(UP, drop_ins=("/a/x.conf", "/a/y z.conf"))), None, "0.1"))
    assert [(each.id, each.command) for each in found] == [
        (FindingId.DROP_IN, "cat /a/x.conf"),
        (FindingId.DROP_IN, "cat '/a/y z.conf'"),
    ]
    assert not any(each.matters for each in found)


@pytest.mark.parametrize(("controllers", "told"), [(None, False), (frozenset(), True), (frozenset({"cpu"}), True)])
def test_limits_on_memory_that_have_no_effect_are_a_note(controllers: frozenset[str] | None, told: bool) -> None:
    found = of_service(replace(WELL, controllers=controllers))
    assert (FindingId.LIMITS_WITHOUT_EFFECT in found) == told
    assert not any(each.matters for each in found.values())
