"""Which headers of a publish request go on to its subscribers (HOR-48): all but those named in the settings and hop-by-hop ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidings.errors import Misconfigured
from tidings.events.headers import RawHeaders

HOP_BY_HOP = (
    "connection",
    "content-encoding",
    "content-type",
    "expect",
    "keep-alive",
    "proxy-.*",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
"""Headers about this one request, and how it is laid out: a delivery has its own."""

KNOWN = 5000
_VISIBLE = re.compile(rb"[\x20-\x7e\t]*")


class KeptHeaders:
    """Picks the headers to keep. What it found out about a header it remembers: clients send the same ones all the time."""

    def __init__(self, dropped: Sequence[str]) -> None:
        try:
            self._dropped = re.compile("|".join(f"(?:{one})" for one in (*dropped, *HOP_BY_HOP)), re.IGNORECASE)
        except re.error as error:
            raise Misconfigured(f"this is no regular expression: {error}", at="horizon.dropped_headers") from error
        self._known: dict[tuple[bytes, bytes], tuple[str, str] | None] = {}

    def of(self, headers: RawHeaders) -> dict[str, str]:
        """The kept headers, names in lower case; a repeated one has each of its values once."""
        kept: dict[str, str] = {}
        known = self._known
        for header in headers:
            pair = known[header] if header in known else self._judged(header)
            if pair is not None:
                name, value = pair
                if name not in kept:
                    kept[name] = value
                elif value not in kept[name].split(", "):
                    kept[name] = f"{kept[name]}, {value}"
        return kept

    def _judged(self, header: tuple[bytes, bytes]) -> tuple[str, str] | None:
        name, value = header[0].lower(), header[1]
        pair = None
        if _VISIBLE.fullmatch(value) and _VISIBLE.fullmatch(name) and not self._dropped.fullmatch(name.decode()):
            pair = name.decode(), value.decode().strip()
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[header] = pair
        return pair
