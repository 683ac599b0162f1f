"""What the hub keeps of a subscription's layout in VNG's way. Plain values."""

from __future__ import annotations

import msgspec

from tidings.registry.formats import Layout, layout_of

FORMAT = "vng"


class VngLayout(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy of an event says of its subscription (VNG-08, VNG-09). `reference` is empty where there is none.

    `cloudevents_names`: names of attributes in lower case, as CloudEvents libraries read them.
    """

    subscription: str
    reference: str = ""
    cloudevents_names: bool = False

    def kept(self) -> Layout:
        """As the registry keeps it."""
        return layout_of(FORMAT, self)
