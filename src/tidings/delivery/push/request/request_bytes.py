"""Requests as bytes. Pure: what cannot stand in a request is refused here, so that no header can smuggle in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

AGENT = "tidings"
BODILESS = frozenset(("GET", "HEAD", "OPTIONS"))

_OWN = (("user-agent", AGENT), ("accept", "*/*"))


class Opening:
    """What every request to a target begins with. Who sends and what is accepted is said once: by the headers, else by the hub."""

    __slots__ = ("_bodiless", "_own", "_start")

    def __init__(self, method: str, target: str, host: str) -> None:
        self._start = f"{method} {target} HTTP/1.1\r\nhost: {host}\r\n"
        self._own = self._start + "".join(f"{name}: {value}\r\n" for name, value in _OWN)
        self._bodiless = method in BODILESS

    def request(self, headers: Mapping[str, str], body: bytes) -> Sequence[bytes]:
        """The request in parts. Raises ValueError for a header that cannot be sent."""
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        length = "" if self._bodiless and not body else f"content-length: {len(body)}\r\n"
        start, ends = self._own, 5
        if "accept" in headers or "user-agent" in headers:
            left = [f"{name}: {value}\r\n" for name, value in _OWN if name not in headers]
            start, ends = self._start + "".join(left), 3 + len(left)
        head = f"{start}{''.join(lines)}{length}\r\n".encode("ascii")
        # Every line ends once: what has more ends brought them along in a name or a value.
        ends += len(lines) + (1 if length else 0)
        if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
            raise ValueError("a header cannot hold a line end")
        return (head, body) if body else (head,)
