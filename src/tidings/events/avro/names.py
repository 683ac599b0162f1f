"""What a schema is known by. Apart from the rest, because whoever only reads a registry needs no decoder."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import msgspec

from tidings.errors import Malformed

_KEPT = 4096


@lru_cache(maxsize=_KEPT)
def fingerprint(text: str) -> str:
    """What a schema is known by beside its events: 16 hexadecimal digits of its exact text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def canonical_text(text: str) -> str:
    """The text as it is kept: the same JSON without insignificant white space. Raises Malformed."""
    try:
        return msgspec.json.format(text.encode(), indent=-1).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Malformed(f"the schema cannot be read as JSON: {error}") from None
