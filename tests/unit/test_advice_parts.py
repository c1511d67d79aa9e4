"""Advice taken apart: words, and a command that can be copied as it stands."""

import pytest

from ankita_agent.core.advice import as_root, is_command, split_advice


@pytest.mark.parametrize(
    ("text", "words", "command"),
    [
        ("close it: chmod 700 '/my state'", "close it", "chmod 700 '/my state'"),
        ("free some space there: df -h /x, then do the same again", "free some space there", "df -h /x"),
        (
            "install it: ankita-agent install    or here: ankita-agent run",
            "install it: ankita-agent install    or here",
            "ankita-agent run",
        ),
        ("go back: mv /a /b", "go back", "mv /a /b"),
        ("there: env -u A_B ankita-agent stop", "there", "env -u A_B ankita-agent stop"),
        ("there: A_B='/my state' ankita-agent stop", "there", "A_B='/my state' ankita-agent stop"),
        ("start the agent: it sets it aside", "start the agent: it sets it aside", ""),
        ("write `run: ls -l`", "write `run: ls -l`", ""),
        ("choose another directory: ANKITA_STATE_DIR=…", "choose another directory: ANKITA_STATE_DIR=…", ""),
        ("close it: chmod 700 '/un", "close it: chmod 700 '/un", ""),
        ("please report this", "please report this", ""),
        ("", "", ""),
    ],
)
def test_a_command_is_what_a_shell_takes_and_everything_else_stays_words(text: str, words: str, command: str) -> None:
    assert split_advice(text) == (words, command)


@pytest.mark.parametrize("text", ["ankita-agent check:", "cat x;", "`cat x`", "do this", "", "A_B=1"])
def test_what_cannot_be_typed_is_no_command(text: str) -> None:
    assert not is_command(text)


def test_root_needs_no_sudo_and_a_path_that_says_so_keeps_its_name() -> None:
    assert as_root("sudo mv '/sudo x' /y && sudo systemctl daemon-reload") == (
        "mv '/sudo x' /y && systemctl daemon-reload"
    )
    assert as_root("cat x | sudo tee y") == "cat x | tee y"
