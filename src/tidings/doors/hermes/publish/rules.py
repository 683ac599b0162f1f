"""What publishing has to know of a topic's document, read once for each version of it."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.doors.hermes.documents.topics import USUAL_LIMIT
from tidings.doors.hermes.names import LARGEST, UNCHECKED_BODY
from tidings.ingest.admission import Admission


@dataclass(frozen=True, slots=True)
class PublishRules:
    """`largest`: the topic's own limit of a body. `checked`: whether a body must be JSON where it is not Avro."""

    admission: Admission
    largest: int
    checked: bool
    source: str


class TopicRules:
    """The rules of all topics, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, PublishRules] = {}

    def of(self, topic: str, admission: Admission) -> PublishRules:
        """The rules of a topic."""
        found = self._made.get(topic)
        if found is None or found.admission is not admission:
            found = self._made[topic] = _rules(topic, admission)
        return found


def _rules(topic: str, admission: Admission) -> PublishRules:
    labels = admission.labels
    return PublishRules(
        admission=admission,
        largest=int(labels.get(LARGEST, USUAL_LIMIT)),
        checked=UNCHECKED_BODY not in labels,
        source=f"/hermes/topics/{topic}",
    )
