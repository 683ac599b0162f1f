"""Paths as operands: inside of predicates, and as arguments of functions."""

from __future__ import annotations

from tidings.filters.jsonpath.compiled_path import ABSENT, Hits, Lost, Operand, PathRun, Test, remembered
from tidings.filters.jsonpath.jayway.steps import Token, is_definite, plain, steps_of
from tidings.filters.jsonpath.standard.steps import taken


def operand(tokens: tuple[Token, ...], absolute: bool) -> Operand:
    """What the path finds: one value, or a list when it may find several; ABSENT when it is missing."""
    relative = _found(tokens)
    return remembered(relative) if absolute else relative


def _found(tokens: tuple[Token, ...]) -> Operand:
    names = plain(tokens)
    if names is not None:
        return _direct(names)
    step, definite = steps_of(tokens), is_definite(tokens)

    def found(current: object, run: PathRun) -> object:
        hits: Hits = []
        try:
            step(current, None, run, hits)
        except Lost:
            return ABSENT
        if definite:
            return hits[0][0] if hits else ABSENT
        return [value for value, _ in hits]

    return found


def _direct(names: tuple[str | int, ...]) -> Operand:
    def found(current: object, run: PathRun) -> object:
        run.work.spend(1 + len(names))
        return taken(current, names)

    return found


def existence(tokens: tuple[Token, ...], absolute: bool) -> Test:
    """Whether the path leads somewhere. One that may lead to several places must not miss a member on its way."""
    names = plain(tokens)
    if names is not None:
        there = operand(tokens, absolute)
        return lambda current, run: there(current, run) is not ABSENT
    step, definite = steps_of(tokens, require=True), is_definite(tokens)

    def exists(current: object, run: PathRun) -> bool:
        hits: Hits = []
        try:
            step(run.root if absolute else current, None, run, hits)
        except Lost:
            return False
        return bool(hits) or not definite

    return exists
