"""From bytes to a tree with places: what is read, what is refused, and that nothing raises."""

import pytest
import yaml

from ankita_agent.adapters.yaml_files import DEEPEST, LARGEST, MOST_NODES, read_document
from ankita_agent.core.problems import Problem
from ankita_agent.core.tree import Document, Kind, Mapping, Node, Scalar, Sequence
from tests.routine_texts import GOOD, UNREADABLE


def the_problem(content: bytes) -> Problem:
    """The only problem of the content."""
    (problem,) = read_document(content).problems
    return problem


def values(node: Node | None) -> object:
    """The tree as plain Python values."""
    match node:
        case Scalar():
            return node.text
        case Mapping():
            return {key.text: values(value) for key, value in node.pairs}
        case Sequence():
            return [values(item) for item in node.items]
        case None:
            return None


def test_values_stay_the_text_that_was_written() -> None:
    document = read_document(b"a: no\nb: 0755\nc: 8:30\nd: 1e3\ne: ~\nf:\ng: 2026-01-01\n")
    expected = {"a": "no", "b": "0755", "c": "8:30", "d": "1e3", "e": "~", "f": "", "g": "2026-01-01"}
    assert values(document.root) == expected


def test_every_value_knows_its_place_and_how_it_was_written() -> None:
    root = read_document("ä: ü\nb: 'q'\nc:\n  - |\n    x\n".encode()).root
    assert isinstance(root, Mapping)
    plain, quoted, block = (value for _, value in root.pairs)
    assert plain == Scalar("ü", Kind.PLAIN, 1, 4, 1, 5)
    assert quoted == Scalar("q", Kind.QUOTED, 2, 4, 2, 7)
    assert isinstance(block, Sequence)
    assert isinstance(block.items[0], Scalar)
    assert (block.items[0].text, block.items[0].kind, block.items[0].line) == ("x\n", Kind.BLOCK, 4)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n", b"---\n", b"---\n...\n", b"\xef\xbb\xbf"])
def test_a_file_with_nothing_in_it_is_no_problem(content: bytes) -> None:
    document = read_document(content)
    assert document.problems == ()
    assert document.root is None or (isinstance(document.root, Scalar) and document.root.null)


def test_a_byte_order_mark_and_windows_line_ends_are_accepted_and_move_no_place() -> None:
    root = read_document(b"\xef\xbb\xbfa: b\r\nc: d\r\n").root
    assert isinstance(root, Mapping)
    assert [(key.text, key.line, key.column) for key, _ in root.pairs] == [("a", 1, 1), ("c", 2, 1)]


def test_what_is_not_utf_8_is_told_with_its_byte_and_place() -> None:
    problem = the_problem(b"a: b\nrun: caf\xe9\n")
    assert problem == Problem(2, 9, "byte 13 (0xe9) is not UTF-8", "save the file as UTF-8")


def test_a_byte_order_mark_does_not_move_the_place_of_what_is_not_utf_8() -> None:
    problem = the_problem(b"\xef\xbb\xbf?\xf0")
    assert (problem.line, problem.column, problem.problem) == (1, 2, "byte 4 (0xf0) is not UTF-8")


def test_utf_16_is_named() -> None:
    assert the_problem("a: b".encode("utf-16")).problem == "the file is in UTF-16"


@pytest.mark.parametrize(("content", "place"), [(b"a: \x00", (1, 4)), (b"a\nb: \x1b[31m", (2, 4)), (b"\x7f", (1, 1))])
def test_a_control_character_is_told_with_its_place(content: bytes, place: tuple[int, int]) -> None:
    problem = the_problem(content)
    assert (problem.line, problem.column) == place
    assert "cannot stand in a text file" in problem.problem


def test_a_second_document_is_refused_where_it_begins() -> None:
    problem = the_problem(b"a: b\n---\nc: d\n")
    assert (problem.line, problem.column) == (2, 1)
    assert "a second document begins here" in problem.problem


def test_a_key_that_stands_twice_names_both_lines() -> None:
    document = read_document(b"a: 1\nb: 2\na: 3\n")
    assert [(each.line, each.problem) for each in document.problems] == [
        (3, "'a' stands here a second time, after line 1")
    ]
    assert values(document.root) == {"a": "1", "b": "2"}


def test_an_alias_stands_for_what_its_anchor_marked() -> None:
    document = read_document(b"a: &x {b: c}\nd: *x\n")
    assert document.problems == ()
    assert values(document.root) == {"a": {"b": "c"}, "d": {"b": "c"}}


def test_a_merge_key_is_refused_and_defaults_are_named() -> None:
    problem = the_problem(b"a: &x {b: c}\nd:\n  <<: *x\n")
    assert problem == Problem(3, 3, "merge keys (<<) are not read", "move what routines share below `defaults:`")


def test_an_alias_inside_of_what_it_stands_for_is_refused() -> None:
    assert "inside of what it stands for" in the_problem(b"a: &x\n  b: *x\n").problem


def test_aliases_that_multiply_are_refused_before_they_are_written_out() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    problem = the_problem("\n".join(lines).encode())
    assert f"more than {MOST_NODES} values" in problem.problem


@pytest.mark.parametrize("content", [b"[" * 5000, b"{a: " * 5000, b"- " * 5000, b"? " * 5000])
def test_deep_nesting_is_refused_and_no_stack_overflows(content: bytes) -> None:
    assert f"more than {DEEPEST} levels" in the_problem(content).problem


def test_nesting_up_to_the_limit_is_read() -> None:
    document = read_document(b"[" * DEEPEST + b"]" * DEEPEST)
    assert document.problems == ()


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    assert f"the most is {LARGEST}" in the_problem(b" " * (LARGEST + 1)).problem


@pytest.mark.parametrize("content", [b"a: !x b\n", b"a: !!str b\n", b"a: !!python/object:os.system {}\n", b"!x [a]\n"])
def test_a_tag_is_refused_and_never_acted_on(content: bytes) -> None:
    assert read_document(content).problems


def test_a_key_that_is_a_list_is_refused() -> None:
    assert "a key is a list or a mapping" in the_problem(b"? [a, b]\n: c\n").problem


@pytest.mark.parametrize("content", UNREADABLE)
def test_every_refusal_has_a_place_and_says_what_to_do(content: bytes) -> None:
    document = read_document(content)
    assert document.root is None
    for problem in document.problems:
        assert problem.line >= 1
        assert problem.fix


@pytest.mark.parametrize("text", GOOD)
def test_both_loaders_of_pyyaml_give_the_same_tree(text: str) -> None:
    fast, plain = (read_document(text.encode(), loader) for loader in (yaml.CSafeLoader, yaml.SafeLoader))
    assert values(fast.root) == values(plain.root)
    assert fast.problems == plain.problems == ()


@pytest.mark.parametrize("content", UNREADABLE)
def test_the_plain_loader_refuses_the_same_files(content: bytes) -> None:
    assert read_document(content, yaml.SafeLoader).problems


@pytest.mark.parametrize("text", [b'a: "\\ud800"', b'a: "\\U00110000"', b"%YAML 1.9999999999\n---\na: b"])
def test_escapes_that_name_no_character_raise_nothing_in_either_loader(text: bytes) -> None:
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        assert isinstance(read_document(text, loader), Document)
