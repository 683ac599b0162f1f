"""What a feed says about itself: its partitions, how they follow each other, and its promises (FCL-02, FCL-20). No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.errors import FeedUnreadable

V1 = 1
V2 = 2


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition. `closed`: nothing is added. `after`: begins where that one ended. `cursors_of`: theirs are valid here."""

    id: str
    closed: bool = False
    after: str | None = None
    cursors_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """The partitions at one time; `token` goes back with every fetch and turns stale when they change."""

    version: int
    token: str
    partitions: tuple[Partition, ...]
    exactly_once: bool = False
    consistent: bool = False

    def get(self, id: str) -> Partition | None:
        """The partition of that id, if it is listed."""
        return next((one for one in self.partitions if one.id == id), None)


def of_version_1(count: int) -> Discovery:
    """Version 1 tells nothing: the client says how many partitions it assumes."""
    return Discovery(V1, "", tuple(Partition(str(n)) for n in range(count)))


def read(body: bytes) -> Discovery:
    """The answer of version 2. Ids and relations may be texts or numbers, and have older names. Raises FeedUnreadable."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FeedUnreadable(
            "what answers there is no feed: its answer is no JSON", found=body[:60], expected="a discovery document"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("partitions"), list):
        raise FeedUnreadable(
            "what answers there is no feed: it lists no partitions", found=body[:60], expected="a discovery document"
        )
    partitions = tuple(_partition(one, f"partitions[{n}]") for n, one in enumerate(found["partitions"]))
    if len({one.id for one in partitions}) != len(partitions):
        raise FeedUnreadable("a partition is listed twice", at="partitions", found=[one.id for one in partitions])
    token = found.get("token", "")
    if not isinstance(token, str | int) or isinstance(token, bool):
        raise FeedUnreadable("the token cannot be read", at="token", found=token, expected="a text")
    return Discovery(V2, str(token), partitions, found.get("exactlyOnce") is True, found.get("consistent") is True)


def _partition(found: Any, at: str) -> Partition:
    if not isinstance(found, dict):
        raise FeedUnreadable("a partition cannot be read", at=at, found=found, expected="an object")
    after = _first_of(found, ("startsAfterPartition", "startsAfterParent"))
    ancestors = _first_of(found, ("cursorFromPartitions", "splitFromAncestors"))
    if not isinstance(ancestors, Sequence | None) or isinstance(ancestors, str):
        raise FeedUnreadable("a list of partitions cannot be read", at=at, found=ancestors, expected="a list of ids")
    return Partition(
        _id(found.get("id"), f"{at}.id"),
        found.get("closed") is True,
        None if after in (None, "") else _id(after, f"{at}.startsAfterPartition"),
        tuple(_id(one, f"{at}.cursorFromPartitions") for one in ancestors or ()),
    )


def _first_of(found: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((found[name] for name in names if found.get(name) is not None), None)


def _id(found: Any, at: str) -> str:
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise FeedUnreadable("the id of a partition cannot be read", at=at, found=found, expected='such as "0"')
    return str(found)
