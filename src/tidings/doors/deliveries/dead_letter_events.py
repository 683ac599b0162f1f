"""Events about dead letters: whatever becomes a dead letter is told once, as `tidings.dead-letter` in `tidings:dead-letters`.

Delivery writes no log, so the api follows the dead letters of all workers by their numbers. How far it came stands in the events
themselves: after a crash it reads those it had not noted yet, so nothing is told twice and nothing is left out. An event about
an event of this topic, or to a subscription that takes this topic, would never end; there is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tidings.access.settings_checks import OPEN
from tidings.clock import rfc3339
from tidings.delivery.push.reader import DeadLetter
from tidings.delivery.push.records.port import Burials, BurialsReader, Buried
from tidings.doors import registry_changes
from tidings.doors.api_parts import ApiParts
from tidings.errors import Malformed, TidingsError, Unavailable, tolerating
from tidings.events.attribute_rules import checked
from tidings.events.model import Event, key_hash
from tidings.events.stored import event_from, head_of
from tidings.log.cursor import cursor_at, cursor_of, marks_of
from tidings.log.port import Draft, Entry, Limit
from tidings.log.position import Marks
from tidings.registry.model import HUB_NAMESPACE, ApprovalMode, Exposure, Name, Subscription, Topic
from tidings.registry.rules.approvals import sourced

logger = logging.getLogger("tidings.api")

TOPIC = Name(HUB_NAMESPACE, "dead-letters")
TYPE = "tidings.dead-letter"
SOURCE = "/tidings/dead-letters"
BY = "tidings"
PAUSE = 1.0
AT_ONCE = 100


class Noted(msgspec.Struct):
    """How far it came: the highest number told of each worker, and how far this topic was read to know it. A hint only."""

    seen: dict[int, int] = {}
    read: str = "0-0"


class DeadLetterEvents:
    """Tells of dead letters. One task of the api process."""

    def __init__(self, parts: ApiParts, burials: BurialsReader) -> None:
        self._parts = parts
        self._burials = burials
        self._path: Path = parts.settings.data / "run" / "dead-letters.told"
        self._noted = Noted()

    async def run(self) -> None:
        """Tell until cancelled."""
        await self._make_topic()
        await self._recall()
        while True:
            with tolerating(Unavailable, doing="telling of dead letters"):
                while await self.tell():
                    pass
            await asyncio.sleep(PAUSE)

    async def tell(self) -> bool:
        """Tell of the next dead letters; whether there may be more."""
        topic = self._parts.snapshot.topics.get(TOPIC)
        if topic is None:
            return False
        found = await asyncio.to_thread(self._burials.burials, self._noted.seen, AT_ONCE)
        if not found.letters:
            return False
        drafts = [self._draft(topic, event) for event in await self._events(found)]
        if drafts:
            positions = await self._parts.log.append(drafts)
            self._noted.read = cursor_at(positions[-1])
        self._noted.seen = {**self._noted.seen, **found.seen}
        self._note()
        return len(found.letters) >= AT_ONCE

    async def _make_topic(self) -> None:
        """The topic is there from the first start on. Who has changed or ended it since is left alone until the next start."""
        if TOPIC in self._parts.snapshot.topics:
            return
        topic = Topic(name=TOPIC, description="Told by the hub itself: events that became dead letters, without their data.")
        # They tell of everybody's subscriptions, so an administrator decides who gets them.
        approval = ApprovalMode.AUTO if self._parts.settings.access.mode == OPEN else ApprovalMode.MANUAL
        exposure = Exposure(topic=TOPIC, publishers=(), approval=approval)
        with tolerating(TidingsError, doing=f"making the topic {TOPIC}"):
            await registry_changes.put(self._parts, [topic, exposure], BY)

    async def _recall(self) -> None:
        """How far it came before: what was noted, and what was told since."""
        with tolerating(OSError, msgspec.MsgspecError, Malformed, doing="reading how far dead letters were told"):
            if self._path.exists():
                self._noted = msgspec.json.decode(self._path.read_bytes(), type=Noted)
                marks_of(self._noted.read)
        topic = self._parts.snapshot.topics.get(TOPIC)
        marks: Marks = marks_of(self._noted.read)
        while topic is not None:
            page = await self._parts.events.read(topic.number, marks, Limit())
            for entry in page.entries:
                number = int(msgspec.json.decode(entry.data or b"{}").get("number", 0))
                worker, told = self._burials.worker_of(number)
                self._noted.seen[worker] = max(told, self._noted.seen.get(worker, 0))
            marks = page.reached
            if not page.entries:
                break
        self._noted.read = cursor_of(marks)

    def _note(self) -> None:
        with tolerating(OSError, doing="noting how far dead letters were told"):
            swap = self._path.with_suffix(".new")
            swap.write_bytes(msgspec.json.encode(self._noted))
            swap.replace(self._path)

    async def _events(self, found: Burials) -> Sequence[Event]:
        names = {subscription.lane: subscription for subscription in self._parts.snapshot.subscriptions.values()}
        fresh = [buried for buried in found.letters if buried.lane in names and not self._is_told(buried)]
        entries = await self._parts.events.fetch([buried.letter.position for buried in fresh])
        return [
            event
            for buried in fresh
            for event in self._about(buried.letter, names[buried.lane], entries.get(buried.letter.position))
        ]

    def _is_told(self, buried: Buried) -> bool:
        """Whether it was told before it moved to another worker's file."""
        if buried.origin is None:
            return False
        worker, number = self._burials.worker_of(buried.origin)
        return number <= self._noted.seen.get(worker, 0)

    def _about(self, letter: DeadLetter, subscription: Subscription, entry: Entry | None) -> Iterator[Event]:
        parts = self._parts
        topics = {topic.number: name for name, topic in parts.snapshot.topics.items()}
        topic = topics.get(entry.topic) if entry is not None else None
        if sourced(subscription, (TOPIC,)) or topic == TOPIC:
            return
        try:
            attributes = event_from(letter.head, None).attributes
        except Malformed:
            attributes = {}
        delivery = parts.ids.text_of(subscription.lane, *letter.position)
        data = {
            "subscription": str(subscription.name),
            "topic": None if topic is None else str(topic),
            "event": {name: attributes.get(name) for name in ("id", "source", "type")},
            "cursor": cursor_at(letter.position),
            "delivery": delivery,
            "number": letter.number,
            "reason": letter.reason,
            "tries": letter.tries,
            "firstAt": rfc3339(letter.first_at),
            "lastAt": rfc3339(letter.last_at),
        }
        context = {
            "specversion": "1.0",
            # The same for ever: whoever gets it twice can tell.
            "id": f"{delivery}.{letter.last_at}",
            "source": SOURCE,
            "type": TYPE,
            "subject": str(subscription.name),
            "time": rfc3339(letter.last_at),
            "datacontenttype": "application/json",
        }
        yield checked(context, msgspec.json.encode(data))

    def _draft(self, topic: Topic, event: Event) -> Draft:
        at, key = self._parts.clock.now(), key_hash(str(event.attributes["subject"]))
        return Draft(topic.number, at, key, head_of(event), event.data)
