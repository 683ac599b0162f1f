"""Names of the door: where its subscriptions stand in the registry."""

from __future__ import annotations

import re

from tidings.errors import NotFound
from tidings.registry.model import Name

NAMESPACE = "cloudevents"
PREFIX = "/cloudevents"
CONFIRM = "/confirm/"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_ours(namespace: str) -> bool:
    """Whether a namespace of topics and subscriptions is this door's."""
    return namespace == NAMESPACE


def subscription_name(id: str) -> Name:
    """The subscription of this id; a document of the same name keeps what only this door knows of it. Raises NotFound."""
    if not _ID.fullmatch(id):
        raise NotFound(f"there is no subscription {id[:80]}")
    return Name(NAMESPACE, id)
