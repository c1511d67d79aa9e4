"""The texts of unit files that a manager has read, for looking at them."""

from collections.abc import Iterable


def read_texts(paths: Iterable[str]) -> list[str]:
    """The text at each path; one that cannot be read is left out, as a mask's /dev/null is empty."""
    texts = []
    for path in filter(None, paths):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                texts.append(file.read())
        except OSError:
            continue
    return texts
