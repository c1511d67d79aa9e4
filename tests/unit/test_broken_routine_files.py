"""No file, however broken, raises or is half believed (at length: tests/fuzz/fuzz_routines.py)."""

from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.broken_files import broken_files, seeds
from tests.fuzz.fuzz_routines import examine


@pytest.mark.parametrize("number", range(len(seeds())))
def test_the_files_that_are_broken_are_themselves_judged(number: int) -> None:
    examine(seeds()[number])


def test_real_files_broken_at_random_are_judged_in_order() -> None:
    for content in islice(broken_files(Random(20261130), seeds()), 1200):
        examine(content)


@given(st.binary(max_size=200))
@settings(max_examples=400)
def test_any_bytes_are_judged_in_order(content: bytes) -> None:
    examine(content)


_WORDS = st.sampled_from(
    [
        "a",
        "schedule",
        "run",
        "env",
        "timeout",
        "@daily",
        "*x",
        "&x",
        "!x",
        "'",
        '"',
        ":",
        "-",
        "{",
        "}",
        "[",
        "]",
        "#",
        "|",
    ]
)


@given(st.lists(st.tuples(st.sampled_from(["", "  ", "    ", "\t", "- "]), st.lists(_WORDS, max_size=5)), max_size=8))
@settings(max_examples=400)
def test_any_lines_of_yaml_like_words_are_judged_in_order(lines: list[tuple[str, list[str]]]) -> None:
    examine("\n".join(indent + " ".join(words) for indent, words in lines).encode())
