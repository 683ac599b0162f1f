"""YAML 1.2 core: what is refused, where, and in which words. What is read is tested with the documents of the Horizon door."""

from __future__ import annotations

import pytest

from tidings import yaml12
from tidings.errors import Malformed
from tidings.yaml12 import documents_in


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a: 1\nb: 2\na: 3", "the key 'a' is given twice at line 3, column 1"),
        ("a: {b: {[x]: y}}", "a key must be a text at line 1, column 9"),
        (
            "base: &base {b: 1}\nc: {<<: *base}",
            "merge keys (<<) are not part of YAML 1.2 at line 2, column 5; expected the members written out",
        ),
        ("a: &x [*x]", "*x is part of itself at line 1, column 8"),
        ("a: *x", "*x is not known at line 1, column 4"),
        ("a: !!binary eA==", "the tag 'tag:yaml.org,2002:binary' is not known at line 1, column 4"),
        ("a: !!int x", "'x' is not of the kind that its tag !!int says at line 1, column 4"),
        ("a: 1e999", "the number '1e999' is too large at line 1, column 4; expected a smaller one, or a text in quotes"),
        (
            f"a: {'1' * 5000}",
            "a number has 5000 characters at line 1, column 4; expected at most 400, or a text in quotes",
        ),
        ("a: b\x01", "a character (code 0x1) may not stand in YAML at line 1, column 5"),
        ("a: [", "this cannot be read as YAML: did not find expected node content at line 2, column 1"),
        ("%TAG !a! b\n" * 11 + "--- 1", "there are too many lines that begin with %; expected at most 10 directives"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(text: str, refusal: str) -> None:
    with pytest.raises(Malformed) as refused:
        documents_in(text)
    assert str(refused.value) == refusal


def test_documents_may_be_as_deep_as_the_bound_and_no_deeper() -> None:
    def deep(levels: int) -> str:
        return "[" * levels + "]" * levels

    assert documents_in(deep(yaml12.MOST_DEPTH))
    with pytest.raises(Malformed, match="nests too deeply at line 1, column 129; expected at most 128 levels"):
        documents_in(deep(yaml12.MOST_DEPTH + 1))


def test_an_alias_is_as_deep_as_what_it_stands_for() -> None:
    half = yaml12.MOST_DEPTH // 2
    text = f"a: &a {'[' * half}1{']' * half}\nb: {'[' * half}*a{']' * half}"
    with pytest.raises(Malformed, match="nests too deeply"):
        documents_in(text)
    assert documents_in(text.replace("[", "", 1).replace("]", "", 1))


def test_values_are_counted_with_aliases_written_out() -> None:
    assert len(documents_in("---\n".join(["1\n"] * 3))) == 3
    assert documents_in(f"[{'1,' * (yaml12.MOST_NODES - 1)}]")
    for text in (f"[{'1,' * yaml12.MOST_NODES}]", f"a: &a [{'1,' * 400}]\nb: [{'*a,' * 400}]"):
        with pytest.raises(Malformed, match=r"hold too much at line .* expected at most 100000 values in all"):
            documents_in(text)


def test_texts_are_counted_with_aliases_written_out() -> None:
    with pytest.raises(Malformed, match="the texts are too long"):
        documents_in(f"a: &a {'x' * 100_000}\nb: [{'*a,' * 50}]")
