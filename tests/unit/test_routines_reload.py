"""Loading and reloading: the good comes into force, the bad changes nothing and is said; restarts too."""

from dataclasses import dataclass, field

import pytest

from ankita_agent.app.routines import Changes, Loaded, Routines, Standing, changes_between
from ankita_agent.core.errors import BadConfiguration
from ankita_agent.core.instants import MINUTE, SECOND, Duration, parse_instant
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import NO_ROUTINES
from ankita_agent.core.routine_file import Judgement
from ankita_agent.testing.clocks import FakeClock
from ankita_agent.testing.routine_files import KeptCopy, WrittenFile
from tests.routine_texts import in_routine, judged

PATH = WrittenFile.path
WATCH = ("/config",)
A = in_routine()
B = in_routine("timeout: 5m")
TWO = "routines:\n  a: {schedule: daily 08:00, run: date}\n  b: {schedule: daily 09:00, run: date}\n"
BAD = "routines:\n  a: {schedule: never}\n"
NOON = parse_instant("2026-11-30T12:00:00Z")


@dataclass
class Setting:
    """An agent's view of one file; `restarted` is the next agent on the same disk."""

    file: WrittenFile
    remembered: KeptCopy = field(default_factory=KeptCopy)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOON))
    parsed: int = 0

    def __post_init__(self) -> None:
        self.routines = self.restarted()

    def restarted(self) -> Routines:
        return Routines(self.file, self.remembered, self.parse, self.clock)

    def parse(self, content: bytes) -> Judgement:
        self.parsed += 1
        return judged(content)

    def saved(self, text: str | None) -> Loaded:
        self.file.text = text
        return self.routines.reload()


def broken() -> KeptCopy:
    kept = KeptCopy()
    kept.broken = True
    return kept


def names(loaded: Loaded) -> list[str]:
    return [routine.name for routine in loaded.file.routines]


def test_a_good_file_comes_into_force_and_is_remembered() -> None:
    setting = Setting(WrittenFile(A))
    loaded = setting.routines.start()
    assert (loaded.standing, names(loaded), loaded.error) == (Standing.IN_FORCE, ["a"], "")
    assert loaded.told == f"1 routine in force from {PATH}"
    assert loaded.directories == WATCH
    assert setting.remembered.content == A.encode()


def test_no_file_at_all_is_an_agent_without_routines() -> None:
    loaded = Setting(WrittenFile(None)).routines.start()
    assert (loaded.standing, loaded.file, loaded.error) == (Standing.ABSENT, NO_ROUTINES, "")
    assert loaded.told == f"there is no {PATH}, so no routine is in force; write one there and it is in force at once"


def test_a_file_that_was_removed_while_no_agent_ran_makes_the_next_one_degraded() -> None:
    setting = Setting(WrittenFile(None), KeptCopy(A.encode()))
    loaded = setting.routines.start()
    assert (loaded.standing, names(loaded)) == (Standing.ABSENT, [])
    assert (
        loaded.told
        == loaded.error
        == (
            f"there is no {PATH}, so 1 routine from before does not fire: a; to have it again: "
            f"cp {KeptCopy.path} {PATH}    to have none, write there: `routines: {{}}`"
        )
    )
    assert setting.routines.reload().error == loaded.error
    assert setting.saved(A).error == ""


def test_only_the_first_of_many_routines_that_do_not_fire_are_named() -> None:
    text = "routines:\n" + "".join(f"  r{n}: {{schedule: daily 08:00, run: date}}\n" for n in range(9))
    error = Setting(WrittenFile(None), KeptCopy(text.encode())).routines.start().error
    assert "so 9 routines from before do not fire: r0, r1, r2, r3, r4 …; to have them again: cp " in error


@pytest.mark.parametrize("text", ["routines: {}\n", "# none\n", "", BAD])
def test_a_copy_without_routines_is_nothing_to_miss(text: str) -> None:
    loaded = Setting(WrittenFile(None), KeptCopy(text.encode())).routines.start()
    assert (loaded.standing, loaded.error) == (Standing.ABSENT, "")


def test_to_want_no_routines_after_the_file_was_removed_is_believed_when_it_is_written() -> None:
    setting = Setting(WrittenFile(None), KeptCopy(A.encode()))
    setting.routines.start()
    assert setting.saved("routines: {}\n").error == ""
    assert setting.restarted().start().error == ""


@pytest.mark.parametrize("text", ["", BAD])
def test_what_is_half_saved_in_place_of_a_removed_file_is_not_taken_for_good(text: str) -> None:
    setting = Setting(WrittenFile(None), KeptCopy(A.encode()))
    before = setting.routines.start()
    loaded = setting.saved(text)
    assert (loaded.standing, names(loaded)) == (Standing.REJECTED, [])
    assert "; no routine is in force; " in loaded.told
    assert "; no routine is in force; " in loaded.error
    assert setting.remembered.content == A.encode()
    assert setting.saved(None).error == before.error


def test_a_file_that_appears_comes_into_force() -> None:
    setting = Setting(WrittenFile(None))
    setting.routines.start()
    loaded = setting.saved(A)
    assert (loaded.standing, names(loaded), loaded.changes) == (
        Standing.IN_FORCE,
        ["a"],
        Changes(added=("a",)),
    )


def test_a_bad_file_with_nothing_good_before_refuses_to_start_with_78() -> None:
    with pytest.raises(BadConfiguration) as caught:
        Setting(WrittenFile(BAD)).routines.start()
    assert caught.value.exit_code == 78
    text = str(caught.value)
    assert text.startswith(f"cannot use {PATH}:2:3: the routine 'a' has no run")
    assert "(and 1 more)" in text
    assert "nothing runs: no earlier routines are known" in text
    assert "ankita-agent check" in text


def test_a_bad_edit_leaves_the_routines_in_force_and_says_so_until_it_is_mended() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    rejected = setting.saved(BAD)
    assert (rejected.standing, names(rejected)) == (Standing.REJECTED, ["a"])
    assert rejected.since == NOON
    place = f"{PATH}:2:3: the routine 'a' has no run (and 1 more)"
    assert rejected.told == f"{place}; 1 routine from before stays in force; see: ankita-agent check"
    assert rejected.error == (
        f"{place}, since 2026-11-30T12:00:00Z; the routines from before stay in force; see: ankita-agent check"
    )
    assert setting.remembered.content == A.encode()

    mended = setting.saved(B)
    assert (mended.standing, mended.error, mended.since) == (Standing.IN_FORCE, "", None)
    assert mended.changes == Changes(changed=("a",))


def test_a_rejection_keeps_its_first_time_over_further_bad_edits() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.saved(BAD)
    setting.clock.pass_time(MINUTE)
    assert setting.saved(BAD + "#").since == NOON
    assert setting.saved(BAD + "#").since == NOON


def test_another_fault_has_a_time_of_its_own() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    times = []
    for text in ("", None, BAD, None, None):
        setting.clock.pass_time(Duration(MINUTE + SECOND // 3))
        loaded = setting.saved(text)
        assert loaded.since is not None
        times.append((loaded.since - NOON) // MINUTE)
    assert times == [1, 2, 3, 4, 4]


def test_a_file_that_is_gone_is_not_called_rejected_and_what_to_do_is_said_where_a_check_would_not() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    back = "to have no routines, write a file with `routines: {}`"
    gone = setting.saved(None)
    assert gone.told == f"{PATH}: the file is gone; 1 routine from before stays in force; put it back; {back}"
    assert gone.error.startswith(f"{PATH}: the file is gone, since 2026-11-30T12:00:00Z; the routines from before")
    assert "as if it was only half saved" in setting.saved("").told


def test_what_the_journal_is_told_holds_no_time_and_what_status_shows_is_cut_to_the_second() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.clock.pass_time(Duration(SECOND // 3))
    for text in (BAD, "", None):
        loaded = setting.saved(text)
        assert "2026" not in loaded.told
        assert ", since 2026-11-30T12:00:00Z;" in loaded.error


def test_a_bad_file_at_a_restart_leaves_the_remembered_routines_in_force() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.file.text = BAD
    loaded = setting.restarted().start()
    assert (loaded.standing, names(loaded)) == (Standing.REJECTED, ["a"])
    assert loaded.error


def test_a_remembered_file_that_is_good_no_more_is_not_put_in_force() -> None:
    with pytest.raises(BadConfiguration):
        Setting(WrittenFile(BAD), KeptCopy(b"routines: {a: {lease: x}}")).routines.start()


def test_an_unchanged_file_costs_no_parsing_and_no_write() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    before = (setting.parsed, setting.remembered.writes)
    loaded = setting.routines.reload()
    assert (setting.parsed, setting.remembered.writes) == before
    assert (loaded.standing, names(loaded), loaded.changes) == (Standing.IN_FORCE, ["a"], Changes())


def test_an_unchanged_bad_file_stays_rejected_and_is_not_judged_again() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.saved(BAD)
    before = setting.parsed
    assert setting.routines.reload().standing is Standing.REJECTED
    assert setting.parsed == before


def test_a_bad_edit_that_is_taken_back_is_in_force_again() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.saved(BAD)
    loaded = setting.saved(A)
    assert (loaded.standing, loaded.changes, loaded.error) == (Standing.IN_FORCE, Changes(), "")


def test_a_restart_on_the_same_file_does_not_write_it_again() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.restarted().start()
    assert setting.remembered.writes == 1


def test_a_file_that_vanishes_under_a_running_agent_is_a_rejected_edit() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    loaded = setting.saved(None)
    assert (loaded.standing, names(loaded)) == (Standing.REJECTED, ["a"])
    assert "the file is gone" in loaded.error
    assert setting.saved(A).standing is Standing.IN_FORCE


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_a_file_that_is_quite_empty_is_taken_for_half_saved(text: str) -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    assert setting.saved(text).standing is Standing.REJECTED
    assert names(setting.restarted().start()) == ["a"]


@pytest.mark.parametrize("text", ["routines: {}\n", "# no routines for now\n"])
def test_a_file_that_says_that_there_are_no_routines_is_believed(text: str) -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    loaded = setting.saved(text)
    assert (loaded.standing, names(loaded), loaded.changes) == (
        Standing.IN_FORCE,
        [],
        Changes(removed=("a",)),
    )


def test_an_empty_file_with_nothing_in_force_is_good() -> None:
    assert Setting(WrittenFile("")).routines.start().standing is Standing.IN_FORCE


def test_without_routines_a_vanished_file_is_no_fault() -> None:
    setting = Setting(WrittenFile("routines: {}\n"))
    setting.routines.start()
    loaded = setting.saved(None)
    assert (loaded.standing, loaded.error) == (Standing.ABSENT, "")


def test_a_file_that_others_may_write_to_is_rejected_like_a_bad_one() -> None:
    setting = Setting(WrittenFile(A))
    setting.routines.start()
    setting.file.unusable = Problem(0, 0, "may be written to by everybody", "chmod o-w")
    loaded = setting.routines.reload()
    assert (loaded.standing, names(loaded)) == (Standing.REJECTED, ["a"])
    assert f"{PATH}: may be written to by everybody" in loaded.error


def test_what_cannot_be_remembered_is_in_force_and_said_until_it_can() -> None:
    setting = Setting(WrittenFile(A), broken())
    loaded = setting.routines.start()
    assert (loaded.standing, names(loaded)) == (Standing.IN_FORCE, ["a"])
    assert "the disk is full" in loaded.error
    setting.remembered.broken = False
    assert setting.routines.reload().error == ""
    assert setting.remembered.content == A.encode()


def test_comments_order_and_descriptions_change_nothing() -> None:
    setting = Setting(WrittenFile(TWO))
    setting.routines.start()
    reordered = """\
# a comment
routines:
  b: {run: date, schedule: "0 9 * * *"}
  a: {run: "date", description: new, schedule: daily 08:00}
"""
    assert setting.saved(reordered).changes == Changes()


def test_changes_name_what_is_new_changed_and_gone() -> None:
    before, after = judged(TWO).file, judged(B + "  c: {schedule: daily 08:00, run: date}\n").file
    assert before is not None
    assert after is not None
    changes = changes_between(before, after)
    assert changes == Changes(added=("c",), changed=("a",), removed=("b",))
    loaded = Loaded(after, Standing.IN_FORCE, PATH, WATCH, changes=changes)
    assert loaded.told == f"2 routines in force from {PATH} (new: c; changed: a; removed: b)"


def test_warnings_of_a_good_file_are_kept_and_make_nothing_degraded() -> None:
    loaded = Setting(WrittenFile(in_routine(run="run: echo a # b"))).routines.start()
    assert [problem.line for problem in loaded.problems] == [4]
    assert loaded.error == ""
