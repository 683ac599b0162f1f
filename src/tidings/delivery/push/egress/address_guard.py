"""The address guard: which addresses a callback may have, judged on what its host name resolves to.

A name is looked up once, every address of the answer is judged, and the connection goes to the judged address itself, so a
second answer of the name server cannot lead elsewhere. Own lists, since `is_global` calls several of these global (SSRF-05).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from tidings.config import AccessSettings, PushSettings, ServerSettings
from tidings.errors import Misconfigured

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""All addresses of a host name, as texts. Raises OSError when there are none."""

BLOCKED: Sequence[Network] = [
    ip_network(text)
    for text in (
        # SSRF-03
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        # SSRF-04
        *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16"),
        *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
]
LOOPBACK: Sequence[Network] = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
_HOSTS = re.compile(r"(?!\*\.?$)[\w*-]+(\.[\w*-]+)*\.?")
"""Host names, where `*` stands for anything; but not everything at once."""

_WRAPPERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("::ffff:0:0:0/96"), IPv6Network("64:ff9b::/96"))
"""IPv4-mapped, IPv4-translated (RFC 2765), and the prefix of NAT64."""


class AddressBlocked(Exception):
    """The callback's address is not allowed. Says which host, never which address (SSRF-09)."""


class Unresolved(Exception):
    """The host name has no address now; trying later may work (SSRF-10)."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What is allowed although it is blocked by default: networks, and hosts by patterns such as `*.hooks.internal`."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    def allow(self, host: str, address: str) -> bool:
        """Whether `host`, which resolves to `address`, may be reached."""
        judged = unwrapped(ip_address(address))
        if _within(judged, self.networks) or self._names(host):
            return True
        return not _within(judged, BLOCKED)

    def names(self, host: str) -> bool:
        """Whether the operator names this host or literal address: then it may also be spoken to without TLS (SSRF-01)."""
        literal = _literal(host)
        return self._names(host) or (literal is not None and _within(unwrapped(literal), self.networks))

    def blocks(self, host: str) -> bool:
        """Whether a host is a literal address that is blocked; names are judged by what they resolve to."""
        literal = _literal(host)
        return literal is not None and not self.allow(host, str(literal))

    def _names(self, host: str) -> bool:
        plain = host.rstrip(".").lower()
        return plain in self.hosts or any("*" in pattern and fnmatchcase(plain, pattern) for pattern in self.hosts)


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def unwrapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 address that only carries one (SSRF-04)."""
    if isinstance(address, IPv6Address) and any(address in network for network in _WRAPPERS):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def told(rules: AddressRules, push: PushSettings) -> str:
    """What callbacks may reach beyond public addresses, as a line of the log (SSRF-08)."""
    loopback = all(network in rules.networks for network in LOOPBACK)
    why = " because the hub listens on loopback only and access is open" if push.allow_loopback == "auto" else ""
    allowed = [*push.allow, *([f"this machine itself{why} (push.allow_loopback)"] if loopback else [])]
    return f"callbacks may reach public addresses{' and ' if allowed else ' only'}{', '.join(allowed)}"


def rules_of(push: PushSettings, server: ServerSettings, access: AccessSettings) -> AddressRules:
    """The operator's rules. Raises Misconfigured for a setting that is neither a network nor a pattern of host names."""
    networks, hosts = [], set()
    for text in push.allow:
        try:
            networks.append(ip_network(text))
        except ValueError:
            if not _HOSTS.fullmatch(text.strip()):
                wanted = "a network such as 10.1.0.0/16, or host names such as hooks.internal or *.hooks.internal"
                raise Misconfigured("the setting cannot be read", at="push.allow", found=text, expected=wanted) from None
            hosts.add(text.strip().rstrip(".").lower())
    if _loopback_allowed(push.allow_loopback, server.host, access.mode):
        networks.extend(LOOPBACK)
    return AddressRules(tuple(networks), frozenset(hosts))


def _loopback_allowed(setting: str, listens_on: str, access: str) -> bool:
    """Where whoever is on this machine may do everything anyway, a callback to it gives nobody more than they have."""
    match setting:
        case "yes":
            return True
        case "no":
            return False
        case "auto":
            return access == "open" and (listens_on == "localhost" or _is_loopback(listens_on))
        case other:
            raise Misconfigured("unknown choice", at="push.allow_loopback", found=other, expected="auto, yes or no")


def _is_loopback(host: str) -> bool:
    literal = _literal(host)
    return literal is not None and _within(literal, LOOPBACK)


class Guard:
    """Finds the addresses that a connection to a host may use."""

    def __init__(self, rules: AddressRules, lookup: Lookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def addresses_of(self, host: str, port: int) -> Sequence[str]:
        """The judged addresses of `host` (a name or a literal address), at least one. Raises Blocked or Unresolved."""
        literal = _literal(host)
        addresses = await self._addresses(host, port) if literal is None else [str(literal)]
        # One forbidden address in the answer spoils it: which one is dialed must not be luck (SSRF-02).
        if not all(self._rules.allow(host, address) for address in addresses):
            raise AddressBlocked(f"the address of {host} is not allowed")
        return [address.partition("%")[0] for address in addresses]

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            found = await self._lookup(host, port)
        except (OSError, UnicodeError) as error:
            raise Unresolved(f"{host} cannot be resolved") from error
        if not found:
            raise Unresolved(f"{host} has no address")
        return found
