"""What the hub keeps of a subscription's layout in Hermes' way. Plain values."""

from __future__ import annotations

import msgspec

from tidings.registry.formats import Layout, layout_of

FORMAT = "hermes"
TOPIC_NAME, SUBSCRIPTION_NAME = "hermes-topic-name", "hermes-subscription-name"


class HermesLayout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How messages of one subscription go out (HER-74, HER-76, HER-78, HER-154).

    `template` is the endpoint where it has variables. `batch_bytes` is how large a batch may be (0: no batches), `wrapped` how its
    elements are written. `avro`: the subscriber wants
    Avro as it was published, not JSON. `schemas` are those of the topic, each with its number, as JSON text.
    """

    topic: str
    subscription: str
    identity: bool = False
    template: str = ""
    batch_bytes: int = 0
    wrapped: bool = True
    avro: bool = False
    schemas: tuple[tuple[int, str], ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        """What every request of the subscription carries."""
        named = {TOPIC_NAME: self.topic, SUBSCRIPTION_NAME: self.subscription}
        return {"keep-alive": "true", **(named if self.identity else {})}

    def kept(self) -> Layout:
        """As the registry keeps it."""
        return layout_of(FORMAT, self)
