"""How domains and subscriptions are named in the core model."""

from __future__ import annotations

import re

from tidings.registry.model import Name, Snapshot
from tidings.registry.rules.names import name_fault

NAMESPACE = "vng"
DOMAINS = "vng/domains"
SUBSCRIPTIONS = "vng/subscriptions"
"""Where the documents of each kind are kept; they are named by their UUID."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def uuid_of(text: str) -> str | None:
    """The UUID that a text writes, in lower case; None for any other text."""
    return text.lower() if _UUID.fullmatch(text) else None


def topic_for(domain: str, uuid: str, snapshot: Snapshot) -> Name:
    """The topic of a new domain: of the same name where a topic may have it, else named by its UUID."""
    name = Name(NAMESPACE, domain)
    return name if name_fault(domain) is None and name not in snapshot.topics else Name(NAMESPACE, uuid)


def subscription_name(uuid: str) -> Name:
    return Name(NAMESPACE, uuid)
