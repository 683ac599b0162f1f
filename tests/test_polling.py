"""Waiting in tests: what is given back, and what is said when it was in vain."""

from __future__ import annotations

import asyncio

import pytest

from tests.polling import until, until_async


def test_the_first_true_answer_is_given_back() -> None:
    answers = iter([None, 0, [], "found"])
    assert until(lambda: next(answers)) == "found"
    answers = iter([None, 0, [], "found"])
    assert asyncio.run(until_async(lambda: next(answers))) == "found"


def test_waiting_in_vain_names_what_was_waited_for() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.02 s: two of three"):
        until(lambda: False, "two of three", within=0.02)
    with pytest.raises(AssertionError, match="two of three"):
        asyncio.run(until_async(lambda: False, lambda: "two of three", within=0.02))
