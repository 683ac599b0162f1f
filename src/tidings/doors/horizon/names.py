"""Horizon's names: environments, client ids, teams, subscription ids, and where they stand in the core's namespaces. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from tidings.registry.model import Name

PREFIX = "horizon/"
DEFAULT = "default"
ROVER, SPECIFICATION = "Rover", "EventSpecification"
KINDS = (ROVER, SPECIFICATION)
SPECIFIED = "horizon.version"
"""The label of a topic that has a specification: its version."""

PUBLISHER, ENVIRONMENT = "by", "environment"
"""Notes beside stored events: who published one, and the environment as the publisher named it."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class Team(NamedTuple):
    """A team of a hub. Written `hub--team`."""

    hub: str
    name: str

    def __str__(self) -> str:
        return f"{self.hub}--{self.name}"

    def client(self, application: str) -> str:
        """The client id of one of its applications."""
        return f"{self}--{application}"


def team_of(client: str) -> Team | None:
    """The team of a client id such as `hub--team--app`; None when it has no such form (HOR-06)."""
    words = client.split("--", 2)
    return Team(words[0], words[1]) if len(words) == 3 and all(words) else None


def same_team(one: str, other: str) -> bool:
    """Whether two clients are of one team."""
    return team_of(one) is not None and team_of(one) == team_of(other)


def application_of(client: str) -> str:
    """The application's own name in a client id."""
    return client.split("--", 2)[-1]


def is_word(text: str) -> bool:
    """Whether this can be the name of an environment, a hub, a team or an application."""
    return _WORD.fullmatch(text) is not None


def environment_of(written: str, default: str) -> str:
    """The environment that a path means: the hub's own name for it is `default` (HOR-02)."""
    return DEFAULT if written == default else written


def topic_name(environment: str, event_type: str) -> Name:
    return Name(PREFIX + environment, event_type)


def subscription_name(environment: str, subscription: str) -> Name:
    return Name(PREFIX + environment, subscription)


def paper_name(environment: str, kind: str, name: str) -> Name:
    """Where a document is kept: a Rover by its client id, a specification by its own name."""
    return Name(f"{PREFIX}{environment}/{kind}", name)


def subscription_id(environment: str, event_type: str, subscriber: str) -> str:
    """One subscription for each environment, event type and subscriber (HOR-07)."""
    return hashlib.sha1(f"{environment}--{event_type}--{subscriber}".encode(), usedforsecurity=False).hexdigest()
