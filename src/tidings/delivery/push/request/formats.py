"""How events go out in a door's own way: the port that a door implements, and the formats of one process.

A request is made in three steps. Each door writes those that it needs:

    shared    once an entry: headers and body, the same for every lane whose format has the same `key`
    own       once an entry and lane, when it is read: what differs for this subscription or delivery (an id, an address)
    attempt   once an attempt: what depends on its number, or another URL

What goes out in the end is, the later over the earlier: headers of the subscription, headers of the format, headers of the entry,
`tidings-delivery-id` and `tidings-attempt`, headers of the attempt, credentials, signatures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

import msgspec

from tidings.config import Settings
from tidings.delivery.push.lane.entries import Parcel
from tidings.errors import Malformed, Misconfigured
from tidings.lanes.port import StoredEntry
from tidings.registry.credentials import Credential
from tidings.registry.formats import Layout


class Laid(NamedTuple):
    """An entry laid out. `fault`: it can never be sent, and why; it becomes a dead letter without an attempt."""

    headers: dict[str, str]
    body: bytes
    fault: str = ""


class AttemptPart(NamedTuple):
    """What one attempt has of its own. Headers go over those of the entry; `url` and `body` take the place of the usual ones.

    `cause`: the attempt fails with this word and nothing is sent; the policy decides what follows, as for every failure.
    """

    headers: Mapping[str, str] = {}
    url: str = ""
    body: bytes | None = None
    cause: str = ""


class LaneFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How the events of one subscription are laid out. A value: equal formats lay out equally. One event loop; nothing here waits.

    `key`: what `shared` returns serves every lane whose format has an equal key, so it names everything that `shared` looks at.
    `headers` go with every request, probes included. `credential` is shown where the subscription has none of its own.
    `group`: subscriptions of different groups share nothing, not even a probe of the same address.
    """

    key: Hashable
    headers: Mapping[str, str] = {}
    credential: Credential | None = None
    group: str = ""

    def shared(self, entry: StoredEntry) -> Laid:
        """The part that lanes share. Raises Malformed: the stored event cannot be read."""
        raise NotImplementedError

    def own(self, laid: Laid, entry: StoredEntry, delivery: str) -> Laid:
        """The entry for this subscription. `delivery` is the delivery id, the same for every try. `laid` belongs to all lanes."""
        return laid

    def attempt(self, parcel: Parcel, tries: int) -> AttemptPart:
        """What this attempt has of its own; `tries` attempts were made before it. A batch comes as one parcel."""
        return AttemptPart()

    def batch(self, parcels: Sequence[Parcel]) -> Laid:
        """The body of a batch, the same for every try, and the headers that are the batch's own."""
        raise NotImplementedError

    @property
    def has_own(self) -> bool:
        """Whether the format has a part of its subscription's own."""
        return type(self).own is not LaneFormat.own

    @property
    def has_attempt(self) -> bool:
        """Whether attempts have something of their own."""
        return type(self).attempt is not LaneFormat.attempt

    @property
    def has_batch(self) -> bool:
        """Whether the format lays out batches itself. If not, batches are laid out as CloudEvents or payloads."""
        return type(self).batch is not LaneFormat.batch


def laid_out(format: LaneFormat, entry: StoredEntry) -> Laid:
    """The shared part of an entry, left where the other lanes find it."""
    try:
        laid = format.shared(entry)
    except Malformed as error:
        laid = Laid({}, b"", str(error))
    entry.forms[format.key] = laid
    return laid


class Formats:
    """The formats of doors. `modules`: where each is, by its name; a module is loaded when a subscription first asks for it.

    A format's module has `lane_format(layout, settings) -> LaneFormat`.
    """

    def __init__(self, modules: Mapping[str, str], settings: Settings) -> None:
        self._modules = modules
        self._settings = settings

    def of(self, layout: Layout | None) -> LaneFormat | None:
        """The format of a subscription; None: as CloudEvents have it. Raises Misconfigured: this hub cannot read it."""
        if layout is None:
            return None
        module = self._modules.get(layout.format)
        if module is None:
            raise Misconfigured("no door of this hub has such a format", found=layout.format, expected=", ".join(self._modules))
        try:
            made: LaneFormat = import_module(module).lane_format(layout, self._settings)
        except msgspec.ValidationError as error:
            raise Misconfigured(f"a layout of the format {layout.format} cannot be read: {error}") from error
        return made
