import itertools
from collections import deque

import pytest

from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.supervise import Effect, Event, Phase, StopReason, advance, judge_end

ALL = list(itertools.product(Phase, Event))


@pytest.mark.parametrize(("phase", "event"), ALL)
def test_every_phase_has_an_answer_to_every_event(phase: Phase, event: Event) -> None:
    following, effects = advance(phase, event)
    assert isinstance(following, Phase)
    assert all(isinstance(effect, Effect) for effect in effects)


@pytest.mark.parametrize(("phase", "event"), ALL)
def test_an_attempt_ends_exactly_when_its_leader_is_seen_to_end(phase: Phase, event: Event) -> None:
    following, effects = advance(phase, event)
    assert (Effect.END in effects) == (phase.leader_lives and not following.leader_lives)


@pytest.mark.parametrize(("phase", "event"), ALL)
def test_it_is_let_go_exactly_when_nothing_of_it_is_left(phase: Phase, event: Event) -> None:
    following, effects = advance(phase, event)
    assert (Effect.LET_GO in effects) == (phase is not Phase.OVER and following is Phase.OVER)


@pytest.mark.parametrize(("phase", "event"), ALL)
def test_why_it_is_stopped_is_noted_only_while_it_runs(phase: Phase, event: Event) -> None:
    _, effects = advance(phase, event)
    assert (Effect.NOTE_REASON in effects) == (phase is Phase.RUNNING and event in (Event.TIME_UP, Event.STOP_ASKED))


@pytest.mark.parametrize(("phase", "event"), ALL)
def test_an_attempt_only_moves_on(phase: Phase, event: Event) -> None:
    order = list(Phase)
    following, _ = advance(phase, event)
    assert order.index(following) >= order.index(phase)


def test_every_phase_can_be_reached_and_every_one_can_come_to_be_over() -> None:
    edges = {phase: {advance(phase, event)[0] for event in Event} for phase in Phase}
    reached, waiting = {Phase.RUNNING}, deque([Phase.RUNNING])
    while waiting:
        for following in edges[waiting.popleft()] - reached:
            reached.add(following)
            waiting.append(following)
    assert reached == set(Phase)
    assert all(Phase.OVER in edges[phase] for phase in Phase)


@pytest.mark.parametrize(
    ("phase", "event", "following", "effects"),
    [
        (Phase.RUNNING, Event.ENDED_LEAVING, Phase.CLEARING, (Effect.END, Effect.TERMINATE)),
        (Phase.RUNNING, Event.TIME_UP, Phase.STOPPING, (Effect.NOTE_REASON, Effect.TERMINATE)),
        (Phase.STOPPING, Event.TIME_UP, Phase.KILLING, (Effect.KILL,)),
        (Phase.STOPPING, Event.STOP_ASKED, Phase.STOPPING, ()),
        (Phase.STOPPING, Event.ENDED_LEAVING, Phase.CLEARING, (Effect.END,)),
        (Phase.KILLING, Event.TIME_UP, Phase.KILLING, (Effect.STUCK, Effect.KILL)),
        (Phase.KILLING, Event.ENDED_LEAVING, Phase.CLEARING_KILL, (Effect.END, Effect.KILL)),
        (Phase.CLEARING, Event.TIME_UP, Phase.CLEARING_KILL, (Effect.KILL,)),
        (Phase.CLEARING_KILL, Event.TIME_UP, Phase.CLEARING_KILL, (Effect.STUCK, Effect.KILL)),
    ],
)
def test_the_steps_of_the_stop_sequence(
    phase: Phase, event: Event, following: Phase, effects: tuple[Effect, ...]
) -> None:
    assert advance(phase, event) == (following, effects)


@pytest.mark.parametrize(
    ("reason", "exit_code", "success", "told"),
    [
        (None, 0, (0,), (Outcome.SUCCEEDED, None)),
        (None, 3, (0, 3), (Outcome.SUCCEEDED, None)),
        (None, 0, (3,), (Outcome.FAILED, Reason.EXIT_STATUS)),
        (None, 1, (0,), (Outcome.FAILED, Reason.EXIT_STATUS)),
        (None, 75, (0,), (Outcome.SKIPPED, Reason.ASKED)),
        (None, 75, (0, 75), (Outcome.SUCCEEDED, None)),
        (None, None, (0,), (Outcome.FAILED, Reason.KILLED)),
        (StopReason.TIMEOUT, 0, (0,), (Outcome.TIMED_OUT, Reason.TIMEOUT)),
        (StopReason.TIMEOUT, 75, (0,), (Outcome.TIMED_OUT, Reason.TIMEOUT)),
        (StopReason.PERSON, None, (0,), (Outcome.STOPPED, Reason.ASKED_TO_STOP)),
        (StopReason.SHUTDOWN, None, (0,), (Outcome.STOPPED, Reason.SHUTDOWN)),
        (StopReason.FENCE, 0, (0,), (Outcome.STOPPED, Reason.FENCED)),
    ],
)
def test_how_an_end_is_told(
    reason: StopReason | None,
    exit_code: int | None,
    success: tuple[int, ...],
    told: tuple[Outcome, Reason | None],
) -> None:
    assert judge_end(reason, exit_code, success) == told
