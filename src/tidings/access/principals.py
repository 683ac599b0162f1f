"""Who asks, and what that one may do. Pure: a principal is a value and its rights are judged without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from tidings.errors import Forbidden, Unauthenticated
from tidings.registry.model import Name
from tidings.registry.rules.names import covers

PREFIX = "tidings:"
"""May stand before a right in a token, where rights of several systems share a claim."""


class Right(StrEnum):
    """What can be allowed, each apart from the others; ADMIN includes all of them, for every topic.

    METRICS is over no topic: figures name every topic, subscription and consumer of the hub.
    """

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    READ = "read"
    METRICS = "metrics"
    ADMIN = "admin"


class Principal(msgspec.Struct, frozen=True):
    """Somebody who is known, with rights over the topics that the patterns cover (`orders`, `orders.*`, `hermes:*`, `*`).

    `client_id` is the application that the token names (HOR-06); `realm` the one that it is for, empty for any.
    Namespaces that begin with a text in `divided` (`horizon/`) are of one realm each, which the rest of the text names.
    """

    name: str
    rights: frozenset[Right]
    topics: tuple[str, ...] = ("*",)
    client_id: str = ""
    realm: str = ""
    divided: tuple[str, ...] = ()

    def reaches(self, namespace: str) -> bool:
        """Whether names of this namespace are for the realm of this one, where they are of one realm at all."""
        if not self.realm:
            return True
        return all(namespace == prefix + self.realm for prefix in self.divided if namespace.startswith(prefix))

    def may(self, right: Right, topic: Name | None = None) -> bool:
        """Whether this one has the right, and over this topic where one is meant."""
        if topic is not None and not self.reaches(topic.namespace):
            return False
        if Right.ADMIN in self.rights:
            return True
        return right in self.rights and (topic is None or covers(self.topics, topic))

    def require(self, right: Right, topic: Name | None = None) -> None:
        """Raise Forbidden unless `may`."""
        if not self.may(right, topic):
            where = f" {topic}" if topic is not None else ""
            if topic is not None and not self.reaches(topic.namespace):
                realm = topic.namespace.rpartition("/")[2]
                raise Forbidden(
                    f"{self.name} may not {_DEED[right]}{where} with a token of the realm {self.realm}",
                    expected=f"a token of the realm {realm}",
                )
            raise Forbidden(
                f"{self.name} may not {_DEED[right]}{where}", expected=f"the right {right.value}{where and ' on it'}"
            )


_DEED = {
    Right.PUBLISH: "publish to",
    Right.SUBSCRIBE: "subscribe to",
    Right.READ: "read",
    Right.METRICS: "see the figures of the whole hub",
    Right.ADMIN: "administer",
}

EVERYONE = Principal("anonymous", frozenset(Right))
"""Whoever asks a hub with open access."""


def require(principal: Principal | None, right: Right, topic: Name | None = None) -> None:
    """Raise Unauthenticated when nobody is known, Forbidden when the one who is known may not."""
    if principal is None:
        raise Unauthenticated("nobody knows who asks", expected="a bearer token in the Authorization header")
    principal.require(right, topic)


def rights_in(claim: object, scopes: Mapping[str, str] = {}) -> frozenset[Right]:
    """The rights that a claim names, as a list or as words in one text. `scopes`: other words for rights.

    Words of other systems are passed over.
    """
    if isinstance(claim, str):
        words: Iterable[object] = claim.split()
    else:
        words = claim if isinstance(claim, list) else ()
    plain = {scopes.get(word, word.removeprefix(PREFIX)) for word in words if isinstance(word, str)}
    return frozenset(right for right in Right if right.value in plain)
