from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ankita_agent.core.environment import (
    FireFacts,
    UserFacts,
    agent_environment,
    attempt_environment,
    parse_env_file,
    service_environment,
)
from ankita_agent.core.instants import parse_instant
from ankita_agent.core.outcomes import Trigger

USER = UserFacts("/home/ann", "ann", "/bin/bash", "/run/user/1000", "/run/user/1000/bus")
FACTS = FireFacts(
    routine="backup",
    fire=7,
    slot=parse_instant("2026-03-02T07:00:00Z"),
    trigger=Trigger.CATCH_UP,
    attempt=1,
    term=3,
    last_success=None,
    missed=2,
)


def test_the_base_environment_is_made_of_facts_about_the_user() -> None:
    assert service_environment(USER) == {
        "HOME": "/home/ann",
        "USER": "ann",
        "LOGNAME": "ann",
        "SHELL": "/bin/bash",
        "PATH": "/home/ann/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/user/1000",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    }
    lingering = service_environment(replace(USER, runtime_directory=None, bus=None))
    assert not {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} & lingering.keys()


def test_an_attempt_is_told_of_its_fire() -> None:
    told = attempt_environment({}, {}, (), FACTS)
    assert told == {
        "ANKITA_ROUTINE": "backup",
        "ANKITA_SLOT": "2026-03-02T07:00:00Z",
        "ANKITA_TRIGGER": "catch_up",
        "ANKITA_ATTEMPT": "1",
        "ANKITA_FIRE": "7",
        "ANKITA_TERM": "3",
        "ANKITA_LAST_SUCCESS": "",
        "ANKITA_MISSED": "2",
    }


def test_the_number_of_the_fire_is_the_same_over_its_retries() -> None:
    retry = attempt_environment({}, {}, (), replace(FACTS, attempt=2, trigger=Trigger.RETRY))
    assert (retry["ANKITA_FIRE"], retry["ANKITA_ATTEMPT"]) == ("7", "2")


def test_the_routine_beats_the_base_its_file_beats_the_routine_and_what_we_say_beats_all() -> None:
    told = attempt_environment(
        {"A": "base", "B": "base", "C": "base", "ANKITA_FIRE": "1"},
        {"B": "routine", "C": "routine", "ANKITA_FIRE": "2"},
        [("C", "file"), ("ANKITA_FIRE", "3")],
        FACTS,
    )
    assert (told["A"], told["B"], told["C"], told["ANKITA_FIRE"]) == ("base", "routine", "file", "7")


def test_what_belongs_to_the_agent_alone_is_never_handed_on() -> None:
    theirs = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "LISTEN_FDS": "1"}
    nothing: dict[str, str] = {}
    for base, routine, file in (
        (theirs, nothing, nothing),
        (nothing, theirs, nothing),
        (nothing, nothing, theirs),
    ):
        assert not theirs.keys() & attempt_environment(base, routine, file.items(), FACTS).keys()
    assert "LISTENER" in attempt_environment({"LISTENER": "x"}, {}, (), FACTS)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=value", "value"),
        ("export KEY=value", "value"),
        ("  KEY=value  ", "value"),
        ("KEY=", ""),
        ("KEY=''", ""),
        ("KEY=a b c", "a b c"),
        ("KEY=a=b", "a=b"),
        ("KEY=a#b", "a#b"),
        ("KEY=a # why", "a"),
        ("KEY=# nothing", ""),
        ("KEY='a # b' # why", "a # b"),
        ("KEY='$HOME \\n'", "$HOME \\n"),
        ('KEY="a \\"b\\" \\\\ # c"', 'a "b" \\ # c'),
        ("KEY=$HOME", "$HOME"),
        ("KEY=it's", "it's"),
        ("KEY=ü\u2028x", "ü\u2028x"),
        ("KEY=value\r", "value"),
    ],
)
def test_how_a_line_of_an_env_file_is_read(line: str, value: str) -> None:
    assert parse_env_file(line) == [("KEY", value)]


def test_blank_lines_and_comments_say_nothing_and_the_order_is_kept() -> None:
    assert parse_env_file("\ufeff# head\n\nB=1\n  # x\nA=2\nB=3\n") == [("B", "1"), ("A", "2"), ("B", "3")]


@pytest.mark.parametrize(
    "text",
    [
        "A=1\nsecret-word",
        "A=1\n2B=secret-word",
        "A=1\nB='secret-word",
        'A=1\nB="secret-word" tail',
        "A=1\nB C=secret-word",
    ],
)
def test_a_bad_line_is_named_by_its_number_and_its_value_is_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="line 2") as caught:
        parse_env_file(text)
    assert "secret-word" not in str(caught.value)


@given(st.text(st.characters(exclude_characters="'\n\r\0", exclude_categories=["Cs"])))
def test_a_value_in_single_quotes_is_taken_as_it_stands(value: str) -> None:
    assert parse_env_file(f"KEY='{value}'\n") == [("KEY", value)]


def test_a_command_within_an_attempt_is_led_to_its_agent() -> None:
    base = agent_environment("/var/state", "/etc/routines")
    told = attempt_environment(base, {}, (), FACTS)
    assert (told["ANKITA_STATE_DIR"], told["ANKITA_CONFIG_DIR"]) == ("/var/state", "/etc/routines")
