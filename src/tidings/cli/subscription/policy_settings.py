"""The delivery policy in force, in the words of `--set`: what is shown can be set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLACES: Mapping[str, tuple[str, ...]] = {
    "preset": ("preset",),
    "ordering": ("ordering",),
    "inflight": ("inflight",),
    "rate": ("pace", "second"),
    "ratePerMinute": ("pace", "minute"),
    "adaptiveRate": ("pace", "adaptive"),
    "sendingDelay": ("sendingDelay",),
    "attemptTimeout": ("attemptTimeout",),
    "tries": ("retry", "tries"),
    "retryFirst": ("retry", "first"),
    "retryFactor": ("retry", "factor"),
    "retryMax": ("retry", "longest"),
    "retryWaits": ("retry", "waits"),
    "retryLifetime": ("retry", "lifetime"),
    "retryHorizon": ("retry", "horizon"),
    "retryAfterMax": ("retry", "askedLongest"),
    "retryAfterAlone": ("retry", "askedAlone"),
    "probeMethod": ("breaker", "method"),
    "probeInterval": ("breaker", "interval"),
    "republishRate": ("breaker", "republish"),
    "disableAfter": ("disableAfter",),
    "tracking": ("tracking",),
    "batchSize": ("batch", "size"),
    "batchTime": ("batch", "time"),
    "batchBytes": ("batch", "bytes"),
    "batchForm": ("batch", "form"),
}

ENDLESS = 10**9
"""Tries without end."""


def in_words(policy: Mapping[str, Any]) -> dict[str, Any]:
    """The policy by the names of its members; times in seconds. What has no bound is left out."""
    words = {name: _at(policy, path) for name, path in _PLACES.items()}
    words["breaker"] = policy.get("breaker") is not None
    if (words["tries"] or 0) >= ENDLESS:
        words["tries"] = None
    answers = _at(policy, ("retry", "answers"))
    words["answers"] = " ".join(f"{answer}={meaning}" for answer, meaning in _answers(answers or {}))
    return {name: value for name, value in words.items() if value is not None}


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _answers(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Exact ones first, as they are looked up."""
    classes = [(f"{first}xx", meaning) for first, meaning in table.get("byClass", {}).items()]
    others = [("none", table.get("none", "")), ("*", table.get("other", ""))]
    return [*table.get("byStatus", {}).items(), *classes, *(one for one in others if one[1])]
