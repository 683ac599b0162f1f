"""Who asks, in Horizon's words: client id, team, realm, administrator (HOR-05, HOR-06, HOR-173). Pure but for the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.access.authentication import address_of
from tidings.access.principals import Principal, Right
from tidings.access.settings_checks import OPEN
from tidings.config import HorizonSettings
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.names import Team, environment_of, is_word, same_team, team_of
from tidings.errors import Forbidden, Malformed, NotFound, Unauthenticated


@dataclass(frozen=True, slots=True)
class Client:
    """A caller. `unchecked`: access is open, so that nobody is known and checks of identity are skipped.

    Documents decide what a token that names a client of a team may do; one that names none needs the rights of the core, too.
    """

    id: str
    realm: str
    admin: bool
    unchecked: bool
    writes: bool

    def acts_for(self, owner: str) -> bool:
        """Whether what belongs to this client is theirs, or their team's."""
        return self.admin or self.unchecked or (owner != "" and (self.id == owner or same_team(self.id, owner)))

    def require(self, owners: tuple[str, ...], what: str) -> None:
        """Raise Forbidden unless they act for one of these."""
        if not any(self.acts_for(owner) for owner in owners):
            raise self.absent(what)

    def subscribes_as(self, subscriber: str) -> bool:
        """Whether they are the subscriber, or of its team; administrators are not."""
        return self.unchecked or self.id == subscriber or same_team(self.id, subscriber)

    def absent(self, what: str) -> Forbidden | NotFound:
        """What is told of something that is not there. Whoever may not see everything cannot tell it from what is not theirs."""
        if self.admin or self.unchecked:
            return NotFound(f"there is no such thing: {what}")
        return Forbidden(f"{what} does not belong to {self.id}, or there is none")


def client_of(principal: Principal, *, unchecked: bool) -> Client:
    """The caller behind a principal."""
    # A client of no team would act for the hub's own one: that takes a right.
    named = team_of(principal.client_id) is not None
    writes = named or principal.may(Right.SUBSCRIBE) or principal.may(Right.PUBLISH)
    client = principal.client_id or principal.name
    return Client(client, principal.realm, Right.ADMIN in principal.rights, unchecked, writes)


async def identified(parts: ApiParts, scope: Mapping[str, Any]) -> Client:
    """The caller of a request. Raises Unauthenticated."""
    principal = await parts.gate.identify(scope["headers"], address_of(scope))
    return client_of(principal, unchecked=parts.settings.access.mode == OPEN)


def entered(client: Client, written: str, settings: HorizonSettings) -> str:
    """The environment that a path means, for somebody who may be there (HOR-02, HOR-57)."""
    environment = environment_of(written, settings.environment)
    if not is_word(environment):
        raise NotFound("there is no such environment", found=written)
    if not may_enter(client, environment, settings):
        raise Unauthenticated(f"Realm {client.realm} does not match environment {written}.")
    return environment


def may_enter(client: Client, environment: str, settings: HorizonSettings) -> bool:
    """Whether the caller may be in this environment: a token with a realm is good for that one only, whoever has it."""
    return not client.realm or environment_of(client.realm, settings.environment) == environment


def team_for(client: Client, settings: HorizonSettings, asked: str | None) -> Team:
    """The team whose documents are meant: of the token, else of the settings; administrators may name any."""
    own = team_of(client.id) or Team(settings.hub, settings.team)
    if not asked:
        return own
    hub, dashes, name = asked.partition("--")
    team = Team(hub, name) if dashes else Team(own.hub, asked)
    if not is_word(team.hub) or not is_word(team.name):
        raise Malformed("this is no team", at="team", found=asked, expected="a name, or hub--team")
    if team != own and not (client.admin or client.unchecked):
        raise Forbidden(f"{client.id} does not act for the team {team}", expected=str(own))
    return team
