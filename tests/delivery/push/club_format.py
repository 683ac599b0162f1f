"""The format of a door that there is not: each step of the port does something that can be seen."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from tidings.config import Settings
from tidings.delivery.push.lane.entries import Parcel
from tidings.delivery.push.request.formats import AttemptPart, Laid, LaneFormat
from tidings.lanes.port import StoredEntry
from tidings.registry.credentials import GatewayToken
from tidings.registry.formats import Layout

LAID: list[int] = []
"""The publishing times of entries, in the order in which the shared part was made."""


class ClubLayout(msgspec.Struct, frozen=True, kw_only=True):
    """`elsewhere`: where to go instead, by the number in the payload."""

    member: str
    elsewhere: dict[str, str] = {}


class ClubFormat(LaneFormat, frozen=True, kw_only=True):
    """The payload, signed by the member."""

    member: str
    elsewhere: dict[str, str]

    def shared(self, entry: StoredEntry) -> Laid:
        LAID.append(entry.at)
        return Laid({"content-type": "application/json", "x-member": "of the entry"}, entry.data or b"null")

    def own(self, laid: Laid, entry: StoredEntry, delivery: str) -> Laid:
        body = b'{"of":%b,"by":%b,"as":%b}' % (laid.body, *map(msgspec.json.encode, (self.member, delivery)))
        return laid._replace(body=body)

    def attempt(self, parcel: Parcel, tries: int) -> AttemptPart:
        again = {"x-tries": str(tries)}
        if not self.elsewhere:
            return AttemptPart(again)
        to = self.elsewhere.get(str(json.loads(parcel.body)["of"]["n"]))
        return AttemptPart(cause="nobody-there") if to is None else AttemptPart(again, url=to, body=b'"moved"')

    def batch(self, parcels: Sequence[Parcel]) -> Laid:
        return Laid({"content-type": "text/plain"}, b"\n".join(parcel.body for parcel in parcels))


def lane_format(layout: Layout, settings: Settings) -> LaneFormat:
    """The format of one subscription."""
    known = layout.read(ClubLayout)
    token = GatewayToken(request_path="/club", publisher="club", subscriber=known.member)
    headers = {"x-member": known.member, "x-hub": settings.hub_url}
    return ClubFormat(
        key="club", headers=headers, credential=token, group=known.member, member=known.member, elsewhere=known.elsewhere
    )
