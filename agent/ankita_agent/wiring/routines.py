"""The file of routines, on this machine."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ankita_agent.adapters.machine import local_zone
from ankita_agent.app.places import Places
from ankita_agent.core.schedule import Timetable
from ankita_agent.core.zones import zone_named
from ankita_agent.ports.routine_source import RoutineSource
from ankita_agent.wiring.user import ThisUser

if TYPE_CHECKING:  # imported where they are used: a reading command must start fast
    from ankita_agent.core.routine_file import Judgement


def routine_source(places: Places) -> RoutineSource:
    """The file of routines of these places."""
    from ankita_agent.adapters.routine_files import RoutineFile
    from ankita_agent.adapters.yaml_files import LARGEST

    return RoutineFile(places.routines, LARGEST)


def routine_judge() -> Callable[[bytes], "Judgement"]:
    """What judges the bytes of a file of routines on this machine."""
    from ankita_agent.adapters.yaml_files import read_document
    from ankita_agent.core.routine_file import judge

    zone = local_zone()
    return lambda content: judge(read_document(content), zone)


def read_routines(user: ThisUser) -> list[tuple[str, Timetable, bool]]:
    """The routines of the file as it stands: (name, slots, enabled). Raises BadConfiguration when it is bad."""
    from ankita_agent.app.preview import preview

    file = preview(routine_source(user.places), routine_judge())
    return [
        (routine.name, Timetable(routine.schedule, zone_named(routine.timezone)), routine.enabled)
        for routine in file.routines
    ]
