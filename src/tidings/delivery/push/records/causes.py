"""Causes of failed attempts and of events that were given up: the word that records keep, and what it says to a person."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

DELETED = "subscription-deleted"
TIMEOUTS = frozenset(("timeout", "connect-timeout"))

SENTENCES: Mapping[str, str] = {
    "timeout": "no answer came in time",
    "connect-timeout": "no connection was made in time",
    "connect-failed": "no connection could be made",
    "connection-lost": "the connection ended before an answer came",
    "bad-answer": "what came back is no HTTP answer",
    "dns-failed": "the host name could not be resolved",
    "tls-failed": "the TLS handshake failed",
    "ssrf-blocked": "the address may not be reached from this hub",
    "bad-url": "the callback's address cannot be used",
    "unsendable": "the request could not be made",
    "internal-error": "the attempt failed inside the hub",
    "credential-expired": "the credential for the endpoint has expired",
    "credential-unreadable": "the credential was sealed with another key",
    "credential-no-provider": "the provider of the credential is not there",
    "credential-refused": "the endpoint refused the credential",
    "expired": "its retention ended before it was delivered",
    "skipped": "the subscription was moved past it",
    DELETED: "the subscription was deleted before it was delivered",
}


def sentence(cause: str) -> str:
    """What a cause means; "" for none. A cause that is no word of ours is a sentence already."""
    word = cause.partition(" ")[0]
    if word.startswith("status-"):
        return f"the endpoint answered {word.removeprefix('status-')}"
    return SENTENCES.get(word, cause)


@lru_cache(maxsize=4096)
def without_query(url: str) -> str:
    """An address as others than its subscriber may see it, with a mark where something is left out."""
    return target_of(url) + ("?…" if "?" in url else "")


def target_of(url: str) -> str:
    """An address as records keep it: without user, password and query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:500]
