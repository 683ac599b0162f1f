"""Names of attributes beyond those of CloudEvents: read in any letter case, with dots or anything else in them.

A hub keeps such an attribute under a key: its name in lower case, with what cannot stand in a key as %XX. Names that CloudEvents
allow are their own keys.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

_OWN_KEY = re.compile(r"[a-z0-9._~-]+")
_SAFE = ":@!+,;=()*"


@lru_cache(maxsize=4096)
def attribute_key(name: str) -> str:
    """The key of an attribute of any name. Names that differ in letter case only have the same."""
    folded = name.lower()
    return folded if _OWN_KEY.fullmatch(folded) else quote(folded, safe=_SAFE, errors="replace")
