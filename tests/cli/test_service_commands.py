"""`ankita-agent start`, `stop` and `restart`, as far as they come without a service manager."""

import pytest

from ankita_agent.cli.main import run_command


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["start", "backup"], "to run it now: ankita-agent trigger backup"),
        (["restart", "backup"], "to run it now: ankita-agent trigger backup"),
        (["stop", "backup"], "to stop all that runs: ankita-agent stop --now"),
        (["cancel", "backup"], "ankita-agent stop --now"),
        (["stop", "--timeout", "5"], "write `5s`, `5m` or `5h`"),
        (["restart", "--timeout", "soon"], "--timeout 30s"),
    ],
)
def test_what_fingers_type_is_answered_and_nothing_is_done(
    arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(arguments) == 2
    assert advice in capsys.readouterr().err
