"""Names: how topics, subscriptions and namespaces are written, and patterns over topic names.

written            means
orders             the name `orders` in the default namespace
hermes:orders      the name `orders` in the namespace `hermes`
horizon/prod:x     a namespace may have several words, joined by `/`
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidings.errors import Malformed
from tidings.registry.model import DEFAULT_NAMESPACE, Name

LONGEST = 253
EXPECTED = "letters, digits, '.', '_' and '-', beginning with a letter or digit"

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def name_fault(name: str) -> str | None:
    """What is wrong with a topic's or subscription's name; None when nothing is."""
    if len(name) > LONGEST:
        return f"a name has at most {LONGEST} characters"
    if name.startswith("~"):
        return "names that begin with '~' are the hub's own"
    return None if _WORD.fullmatch(name) else f"a name has {EXPECTED}"


def namespace_fault(namespace: str) -> str | None:
    """What is wrong with a namespace; None when nothing is."""
    if len(namespace) > LONGEST:
        return f"a namespace has at most {LONGEST} characters"
    if all(_WORD.fullmatch(word) for word in namespace.split("/")):
        return None
    return f"a namespace has words joined by '/', each with {EXPECTED}"


def parse_name(text: str) -> Name:
    """The name that `text` writes. Raises Malformed."""
    namespace, colon, plain = text.partition(":")
    name = Name(namespace, plain) if colon else Name(DEFAULT_NAMESPACE, text)
    fault = namespace_fault(name.namespace) or name_fault(name.name)
    if fault:
        raise Malformed(f"not a valid name: {fault}", found=text)
    return name


def covers(patterns: Iterable[str], topic: Name) -> bool:
    """Whether one of the patterns means this topic. A pattern without namespace means the default one; `*` alone means all."""
    return any(_covers(pattern, topic) for pattern in patterns)


def _covers(pattern: str, topic: Name) -> bool:
    if pattern == "*":
        return True
    namespace, colon, plain = pattern.partition(":")
    if not colon:
        namespace, plain = DEFAULT_NAMESPACE, pattern
    return fits(namespace, topic.namespace) and fits(plain, topic.name)


def fits(pattern: str, text: str) -> bool:
    """Whether `text` is the pattern, or begins with it where the pattern ends in `*`."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
