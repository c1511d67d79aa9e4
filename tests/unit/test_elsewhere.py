"""A service of other directories is never taken for that of this shell."""

import os
import shlex
import subprocess

import pytest

from ankita_agent.core.elsewhere import (
    VARIABLES,
    meaning_it,
    refuse_elsewhere,
    refuse_taking_over,
    served,
    serves_elsewhere,
)
from ankita_agent.core.errors import WrongUse

STATE, CONFIG = VARIABLES
USUAL = {STATE: "/home/ann/.local/state/ankita-agent", CONFIG: "/home/ann/.config/ankita-agent"}
RUN = {STATE: "/home/ann/src/.run/state", CONFIG: "/home/ann/src/.run/config"}


@pytest.mark.parametrize("both", [{}, USUAL, RUN])
def test_a_service_with_the_directories_of_this_shell_is_its_own(both: dict[str, str]) -> None:
    assert serves_elsewhere(both, both, USUAL) == ()
    refuse_elsewhere("stop", (), frozenset())
    refuse_taking_over((), frozenset())


@pytest.mark.parametrize(("service", "shell"), [({}, USUAL), (USUAL, {}), ({STATE: ""}, {})])
def test_the_usual_directory_is_the_same_written_out_and_left_out(
    service: dict[str, str], shell: dict[str, str]
) -> None:
    assert serves_elsewhere(service, shell, USUAL) == ()


def test_each_directory_that_differs_is_told_with_both_paths() -> None:
    found = serves_elsewhere({}, RUN, USUAL)
    assert [(each.variable, each.service, each.shell) for each in found] == [
        (name, USUAL[name], RUN[name]) for name in VARIABLES
    ]
    (one,) = serves_elsewhere({STATE: "/a"}, {}, USUAL)
    assert (one.service, one.shell, one.usual) == ("/a", USUAL[STATE], False)


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_a_command_for_another_service_is_refused_with_both_and_how_to_mean_it(verb: str) -> None:
    with pytest.raises(WrongUse) as raised:
        refuse_elsewhere(verb, serves_elsewhere({}, RUN, USUAL), frozenset(VARIABLES))
    told = str(raised.value)
    assert told.startswith(f"will not {verb} the service: it serves {USUAL[STATE]}, and this shell has {RUN[STATE]}; ")
    assert "\n  nothing was changed\n" in told
    assert f"env -u ANKITA_STATE_DIR -u ANKITA_CONFIG_DIR ankita-agent {verb}    or: systemctl --user {verb} " in told


def test_installing_over_another_service_is_refused_with_what_takes_that_away_first() -> None:
    with pytest.raises(WrongUse) as raised:
        refuse_taking_over(serves_elsewhere({STATE: "/a"}, {}, USUAL), frozenset())
    assert "ANKITA_STATE_DIR=/a ankita-agent uninstall    then: ankita-agent install" in raised.value.do


@pytest.mark.parametrize(
    ("service", "shell"),
    [
        ({}, RUN),
        (RUN, {}),
        ({STATE: "/a b'$x"}, {STATE: "/c"}),
        ({CONFIG: "/a"}, {STATE: "/c"}),
        ({STATE: "/a"}, {CONFIG: "/a", STATE: "/a"}),
    ],
)
def test_the_advice_when_typed_leads_to_the_service(service: dict[str, str], shell: dict[str, str]) -> None:
    found = serves_elsewhere(service, shell, USUAL)
    line = meaning_it("stop", found, frozenset(shell)).replace("ankita-agent stop", "env -0")
    said = subprocess.run(["sh", "-c", line], env={**shell, "PATH": os.defpath}, capture_output=True, check=True).stdout
    now = dict(each.split("=", 1) for each in said.decode().split("\0") if each)
    assert serves_elsewhere(service, now, USUAL) == ()


def test_what_a_unit_serves_is_what_its_files_say_the_last_one_winning() -> None:
    unit = f'[Service]\nExecStart=/bin/true\nEnvironment="{STATE}=%h/a b" LANG=C\n'
    assert served([unit], "/home/ann") == {STATE: "/home/ann/a b"}
    assert served([unit, f"[Service]\nEnvironment={STATE}=/c\n"], "/") == {STATE: "/c"}
    assert served([unit, "[Service]\nEnvironment=\n"], "/") == {}
    assert served([], "/") == {}
    assert shlex.split(meaning_it("stop", (), frozenset())) == ["ankita-agent", "stop"]
