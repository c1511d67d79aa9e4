"""The command for the journal is one that finds something there, whoever the user is."""

import pytest

from ankita_agent.core.journal import lines_command


@pytest.mark.parametrize("uid", [1000, 4242, 65533])
def test_a_person_reads_the_journal_that_is_theirs(uid: int) -> None:
    assert lines_command(uid, "-f") == "journalctl --user -u ankita-agent -f"


@pytest.mark.parametrize("uid", [0, 1, 998, 999])
def test_what_a_system_account_wrote_is_looked_for_in_the_journal_of_the_system_and_told_from_that_of_others(
    uid: int,
) -> None:
    assert lines_command(uid, "-n 20") == f"journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID={uid} -n 20"
