"""The delay of a routine on a machine."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import MILLISECOND, MINUTE, SECOND, Duration
from ankita_agent.core.jitter import delay_of

FIVE_MINUTES = Duration(5 * MINUTE)


def test_the_delay_of_a_routine_on_a_machine_never_changes() -> None:
    # Written down, so that no version, no Python and no hash seed may change it.
    assert delay_of("4fd2c1", "morning-briefing", FIVE_MINUTES) == 73_785 * MILLISECOND
    assert delay_of("4fd2c1", "backup", FIVE_MINUTES) == 143_876 * MILLISECOND


@settings(derandomize=True, database=None, deadline=None)
@given(machine=st.text(), routine=st.text(), bound=st.integers(1, 30 * 86_400 * SECOND))
def test_a_delay_is_whole_milliseconds_from_zero_to_less_than_its_bound(machine: str, routine: str, bound: int) -> None:
    delay = delay_of(machine, routine, Duration(bound))
    assert 0 <= delay < bound
    assert delay % MILLISECOND == 0


def test_no_bound_is_no_delay() -> None:
    assert delay_of("machine", "routine", Duration(0)) == 0


def test_the_names_of_machine_and_routine_are_not_run_together() -> None:
    assert delay_of("ab", "c", FIVE_MINUTES) != delay_of("a", "bc", FIVE_MINUTES)


def test_many_machines_spread_over_the_whole_bound() -> None:
    fifths = [0] * 5
    for machine in range(1000):
        fifths[delay_of(str(machine), "backup", FIVE_MINUTES) // MINUTE] += 1
    assert min(fifths) > 150
