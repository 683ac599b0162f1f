"""URIs by the grammar of RFC 3986: what may stand in `source` and `dataschema`.

Possessive quantifiers keep the match linear for hostile input.
"""

from __future__ import annotations

import re

_HEX = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9\-._~!$&'()*+,;="
_USER = rf"(?:[{_UNRESERVED}:]|{_HEX})*"
_HOST = rf"(?:\[(?:[0-9A-Fa-f:.]++|[Vv][0-9A-Fa-f]++\.[{_UNRESERVED}:]++)\]|(?:[{_UNRESERVED}]++|{_HEX})*+)"
_AUTHORITY = rf"//(?:{_USER}@)?{_HOST}(?::[0-9]*+)?"
_PATH = rf"(?:[{_UNRESERVED}:@/]++|{_HEX})*+"
_FIRST_SEGMENT = rf"(?:[{_UNRESERVED}@]++|{_HEX})*+"
_TAIL = rf"(?:\?(?:[{_UNRESERVED}:@/?]++|{_HEX})*+)?(?:#(?:[{_UNRESERVED}:@/?]++|{_HEX})*+)?"
_NETWORK = rf"{_AUTHORITY}(?:/{_PATH})?"
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*+:(?:{_NETWORK}|(?!//){_PATH}){_TAIL}"
_RELATIVE = rf"(?:{_NETWORK}|(?!//)(?:/{_PATH}|{_FIRST_SEGMENT}(?:/{_PATH})?)){_TAIL}"

_URI = re.compile(_ABSOLUTE)
_URI_REFERENCE = re.compile(rf"{_RELATIVE}|{_ABSOLUTE}")


def is_uri(text: str) -> bool:
    """A URI with its scheme; a fragment is allowed, since the addresses of schemas have them."""
    return _URI.fullmatch(text) is not None


def is_uri_reference(text: str) -> bool:
    """A URI or a relative reference such as /topics/orders."""
    return _URI_REFERENCE.fullmatch(text) is not None
