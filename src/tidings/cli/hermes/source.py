"""What is to be imported: a file, or what a running Hermes management tells, its documents one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tidings.client.http import HubClient
from tidings.errors import Malformed

LISTS = ("groups", "oauthProviders", "topics", "subscriptions")


class HermesDocuments(msgspec.Struct, frozen=True):
    """Everything that is imported, in the order in which one needs the other."""

    groups: list[dict[str, Any]]
    oauthProviders: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    subscriptions: list[dict[str, Any]]


def documents_at(source: str) -> HermesDocuments:
    """The documents of a file or of a management API. Raises Malformed, HubProblem or HubUnreachable."""
    if source.startswith(("http://", "https://")):
        return _from_management(HubClient(source))
    return documents_in(Path(source))


def documents_in(file: Path) -> HermesDocuments:
    """The documents of a file: an object with the four lists of LISTS, each document as Hermes shows it."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise Malformed("the file cannot be read", at=str(file), expected=error.strerror or "") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the file is not JSON: {error}", at=str(file)) from error
    if not isinstance(value, dict) or not set(value) <= set(LISTS):
        raise Malformed("this is no import from Hermes", at=str(file), expected=f"an object with {', '.join(LISTS)}")
    return HermesDocuments(*(_objects(value.get(name) or [], name) for name in LISTS))


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Malformed("these are no documents", at=name, expected="a list of objects")
    return value


def _from_management(client: HubClient) -> HermesDocuments:
    topics = [client.get(f"/topics/{_segment(name)}") for name in client.get("/topics")]
    return HermesDocuments(
        groups=[client.get(f"/groups/{_segment(name)}") for name in client.get("/groups")],
        oauthProviders=list(_providers(client)),
        topics=topics,
        subscriptions=[one for topic in topics for one in _subscriptions(client, topic["name"])],
    )


def _providers(client: HubClient) -> Iterator[dict[str, Any]]:
    """Some versions tell names, others whole objects."""
    for one in client.get("/oauth/providers"):
        yield one if isinstance(one, dict) else client.get(f"/oauth/providers/{_segment(one)}")


def _subscriptions(client: HubClient, topic: str) -> Iterator[dict[str, Any]]:
    path = f"/topics/{_segment(topic)}/subscriptions"
    for name in client.get(path):
        yield client.get(f"{path}/{_segment(name)}")


def _segment(name: str) -> str:
    return quote(name, safe="")
