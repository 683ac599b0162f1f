"""Texts that a person gives a command: inline, in a file, on stdin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.cli.terminal.input_text import given
from tidings.errors import Malformed


def test_a_text_is_taken_as_it_stands_even_when_it_is_too_long_for_a_name() -> None:
    for text in ("total > 5", "", "x" * 300, "x" * 5000, "a\nb", "a\0b", "größe = 1", "a.json = 1", '["a.json"]'):
        assert given(text, "the filter") == text


def test_the_name_of_a_file_stands_for_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "event"
    file.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')
    assert given(str(file), "the event") == '{"a": "é"}'


def test_a_file_that_is_not_text_is_told_with_the_place(tmp_path: Path) -> None:
    file = tmp_path / "event"
    file.write_bytes(b"ab\xff")
    with pytest.raises(Malformed, match="the event is not in UTF-8 at byte 2"):
        given(str(file), "the event")


@pytest.mark.parametrize("name", ["filter.json", "folder/filter.yaml", "./a.yml", "rules.sql"])
def test_what_looks_like_a_file_that_is_not_there_is_told_so(name: str) -> None:
    with pytest.raises(Malformed, match="there is no such file"):
        given(name, "the filter")
