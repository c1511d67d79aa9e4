"""Names of routines on the command line: finding them, and helping with those that are none."""

from difflib import get_close_matches

from ankita_agent.app.queries import Document
from ankita_agent.core.errors import NoSuchRoutine


def no_such_routine(name: str, known: list[str], *, where: str = "in force") -> NoSuchRoutine:
    """The fault for a name that no routine bears, with the nearest that one does."""
    near = get_close_matches(name, known, n=1)
    more = " …" if len(known) > 8 else ""
    return NoSuchRoutine(
        f"there is no routine {name!r} {where}",
        fact=f"there are {len(known)}: {', '.join(known[:8])}{more}" if known else f"no routine is {where} at all",
        do=f"did you mean {near[0]}?"
        if near
        else "see them: ankita-agent list    and the newest edit: ankita-agent check",
    )


def document_of(name: str, documents: list[Document]) -> Document:
    """The one of these documents that is about the routine. Raises NoSuchRoutine."""
    for document in documents:
        if document["name"] == name:
            return document
    raise no_such_routine(name, [document["name"] for document in documents])
