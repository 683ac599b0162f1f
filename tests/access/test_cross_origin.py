from __future__ import annotations

import pytest

from tidings.access.cross_origin import refuse_strangers
from tidings.errors import Forbidden


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"localhost:8484")],
        [(b"host", b"127.0.0.1")],
        [(b"host", b"[::1]:8484")],
        [(b"host", b"localhost.")],
        [(b"host", b"127.0.0.1:8484"), (b"origin", b"http://localhost:3000")],
        [(b"host", b"127.0.0.1:8484"), (b"sec-fetch-site", b"none")],
        [(b"host", b"localhost:8484"), (b"sec-fetch-site", b"same-site")],
        [(b"host", b"localhost:8484"), (b"sec-fetch-site", b"same-origin")],
        [(b"host", b"127.0.0.1:8484"), (b"sec-fetch-site", b"cross-site"), (b"origin", b"http://localhost:3000")],
    ],
)
def test_this_machine_is_let_in(headers: list[tuple[bytes, bytes]]) -> None:
    refuse_strangers(headers)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"evil.example")],
        [(b"host", b"evil.example:8484"), (b"origin", b"http://evil.example:8484")],
        [(b"host", b"localhost.evil.example")],
        [(b"host", b"localhost:8484"), (b"origin", b"https://evil.example")],
        [(b"host", b"localhost:8484"), (b"origin", b"null")],
        [(b"host", b"")],
        [(b"host", b"localhost:8484"), (b"sec-fetch-site", b"cross-site")],
        [(b"host", b"localhost:8484"), (b"sec-fetch-site", b"cross-site"), (b"origin", b"https://evil.example")],
    ],
)
def test_pages_from_elsewhere_and_other_names_are_not(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Forbidden):
        refuse_strangers(headers)
