"""What a topic's Avro schemas may be: read within bounds, compatible as the topic asks, never taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidings.errors import Malformed
from tidings.events.avro.names import canonical_text
from tidings.registry.avro import AvroPayload, AvroVersion, Compatibility
from tidings.registry.model import Topic
from tidings.registry.rules.faults import Fault, refuse

MAX_VERSIONS = 200
MAX_BYTES = 1 << 20
"""All versions of one topic together: they are kept with every version of the topic."""


def avro_faults(topic: Topic) -> Iterator[Fault]:
    """Everything wrong with the schemas in themselves, but for their meaning."""
    avro = topic.avro
    if avro is None:
        return
    if topic.schema is not None:
        yield "schema", "a topic has a JSON Schema or an Avro schema, not both"
    if not avro.versions:
        yield "avro.schema", "a topic with Avro payloads needs a schema"
    if len(avro.versions) > MAX_VERSIONS:
        yield "avro.schema", f"at most {MAX_VERSIONS} versions; a new topic can begin anew"
    if sum(len(one.schema) for one in avro.versions) > MAX_BYTES:
        yield "avro.schema", f"all versions together have at most {MAX_BYTES} characters; a new topic can begin anew"


def avro_meaning_faults(topic: Topic) -> Iterator[Fault]:
    """What is wrong with new schemas: they are compiled here."""
    from tidings.events.avro.schema import compiled

    for one in () if topic.avro is None else topic.avro.versions:
        if not one.number:
            try:
                compiled(one.schema)
            except Malformed as error:
                yield "avro.schema", str(error)


def settled_avro(wanted: Topic, standing: Topic | None) -> AvroPayload | None:
    """The schemas as they will be: those in force, and after them what is new, numbered. Raises InvalidDocument."""
    before = standing.avro if standing is not None else None
    if wanted.avro is None:
        if before is not None:
            refuse([wanted], lambda _: [("avro", "a topic keeps its Avro schemas, because events were written by them")])
        return None
    versions = list(before.versions) if before is not None else []
    known = {one.schema for one in versions}
    compatibility = wanted.avro.compatibility
    for one in wanted.avro.versions:
        text = canonical_text(one.schema)
        if text not in known:
            known.add(text)
            faults = list(_incompatible(text, versions, compatibility))
            refuse([wanted], lambda _, faults=faults: faults)  # type: ignore[misc]
            versions.append(AvroVersion(versions[-1].number + 1 if versions else 1, text))
    settled = AvroPayload(versions=tuple(versions), compatibility=compatibility)
    refuse(
        [msgspec.structs.replace(wanted, avro=settled)], lambda topic: avro_faults(topic) if isinstance(topic, Topic) else ()
    )
    return settled


def incompatible(text: str, versions: Sequence[AvroVersion], wanted: Compatibility) -> Iterator[str]:
    """Why a new schema does not agree with the versions before it."""
    from tidings.events.avro.compatibility import unreadable
    from tidings.events.avro.schema import compiled

    backward = wanted in (*_FULL, Compatibility.BACKWARD, Compatibility.BACKWARD_TRANSITIVE)
    forward = wanted in (*_FULL, Compatibility.FORWARD, Compatibility.FORWARD_TRANSITIVE)
    new = compiled(text).tree
    for one in reversed(versions if wanted.value.endswith("-transitive") else versions[-1:]):
        old = compiled(one.schema).tree
        if backward and (reason := unreadable(new, old)):
            yield f"it cannot read what version {one.number} wrote: {reason}"
        if forward and (reason := unreadable(old, new)):
            yield f"version {one.number} cannot read what it writes: {reason}"


_FULL = (Compatibility.FULL, Compatibility.FULL_TRANSITIVE)


def _incompatible(text: str, versions: Sequence[AvroVersion], wanted: Compatibility) -> Iterator[Fault]:
    try:
        for reason in incompatible(text, versions, wanted):
            yield "avro.schema", f"{reason} (compatibility {wanted.value})"
    except Malformed as error:
        yield "avro.schema", str(error)
