"""What credentials, signing keys and token providers may say, and which of their members are secret.

A secret is checked as it was given and again once it is sealed: both forms pass, and nothing else may hide behind the mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar, assert_never

import msgspec

from tidings.errors import Malformed
from tidings.registry.credentials import (
    SECRETS,
    Basic,
    Credential,
    GatewayToken,
    GrantType,
    OAuth,
    SigningKey,
    TokenCredential,
    is_sealed,
)
from tidings.registry.model import Name, Provider, Push, Snapshot, Subscription
from tidings.registry.port import Document
from tidings.registry.rules.callbacks import HEADER_CHARACTERS, url_fault
from tidings.registry.rules.faults import Fault, between
from tidings.registry.rules.names import name_fault, namespace_fault, parse_name

DELAY = (0.0, 3600.0)
REQUEST_TIMEOUT = (0.1, 60.0)
SOCKET_TIMEOUT = (0.0, 60.0)
SIGNING_KEYS = 10

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Seal = Callable[[str, str], str]
"""A place and a text become the sealed text."""

D = TypeVar("D", bound=Document)


def sealed(document: D, seal: Seal) -> D:
    """The document with every secret of it sealed; each in a place of its own, so that none can be moved elsewhere."""
    match document:
        case Subscription(delivery=Push() as push):
            return msgspec.structs.replace(document, delivery=_sealed_push(push, f"subscription/{document.name}", seal))
        case Provider():
            place = secret_place(f"provider/{document.name}", "client_secret")
            return msgspec.structs.replace(document, client_secret=seal(place, document.client_secret))
        case _:
            return document


def secret_place(owner: str, *path: str) -> str:
    """Where a secret stands. `owner` is `subscription/<name>` or `provider/<name>`."""
    return "/".join((owner, *path))


def _sealed_push(push: Push, owner: str, seal: Seal) -> Push:
    headers = {name: seal(secret_place(owner, "headers", name.lower()), value) for name, value in push.headers.items()}
    keys = tuple(msgspec.structs.replace(key, secret=seal(secret_place(owner, "signing"), key.secret)) for key in push.signing)
    credential = push.credential
    if credential is not None:
        hidden = {
            member: seal(secret_place(owner, "credential", member), getattr(credential, member))
            for member in SECRETS[type(credential)]
            if getattr(credential, member)
        }
        credential = msgspec.structs.replace(credential, **hidden)
    return msgspec.structs.replace(push, headers=headers, signing=keys, credential=credential)


def credential_faults(push: Push) -> Iterator[Fault]:
    """Everything wrong with what a push shows of itself to its endpoint."""
    if push.credential is not None:
        yield from ((f"delivery.credential.{member}", fault) for member, fault in _faults_of(push.credential))
    if len(push.signing) > SIGNING_KEYS:
        yield "delivery.signing", f"at most {SIGNING_KEYS} keys; wait until old ones have run out"
    yield from (("delivery.signing", "this is no signing key") for key in push.signing if not _is_signing_key(key))


def _faults_of(credential: Credential) -> Iterator[Fault]:
    match credential:
        case Basic(user=user):
            if not user or ":" in user or not _PRINTABLE.fullmatch(user):
                yield "user", "a user is a text without colons"
            yield from _secret("password", credential.password, _PRINTABLE)
        case TokenCredential():
            yield from _secret("token", credential.token, _VISIBLE)
            if not _TOKEN.fullmatch(credential.token_type):
                yield "token_type", "expected a word such as Bearer"
            if credential.refresh:
                yield from _secret("refresh", credential.refresh, _VISIBLE)
                yield from _address("refresh_at", credential.refresh_at)
            elif credential.refresh_at:
                yield "refresh_at", "without a refresh token nothing can be fetched there"
        case OAuth(grant=grant):
            yield from _provider_name(credential.provider)
            if (grant is GrantType.PASSWORD) != bool(credential.user and credential.password):
                yield "user", "the grant password, and only that, needs a user and a password"
            yield from _secret("password", credential.password, _PRINTABLE)
        case GatewayToken():
            for member in ("request_path", "publisher", "subscriber"):
                if not _VISIBLE.fullmatch(getattr(credential, member)):
                    yield member, "expected visible ASCII"
            if credential.environment and not _VISIBLE.fullmatch(credential.environment):
                yield "environment", "expected visible ASCII"
        case _:
            assert_never(credential)


def provider_faults(provider: Provider) -> Iterator[Fault]:
    """Everything wrong with a provider of tokens."""
    fault = namespace_fault(provider.name.namespace) or name_fault(provider.name.name)
    if fault:
        yield "name", fault
    yield from _address("token_endpoint", provider.token_endpoint)
    if not provider.client_id or not _PRINTABLE.fullmatch(provider.client_id):
        yield "client_id", "a client id is a text"
    yield from _secret("client_secret", provider.client_secret, _PRINTABLE)
    yield from between("first_delay", provider.first_delay, DELAY, "seconds")
    yield from between("longest_delay", provider.longest_delay, DELAY, "seconds")
    yield from between("request_timeout", provider.request_timeout, REQUEST_TIMEOUT, "seconds")
    yield from between("socket_timeout", provider.socket_timeout, SOCKET_TIMEOUT, "seconds")


def unknown_provider_faults(document: Document, after: Snapshot) -> Iterator[Fault]:
    """A provider that a subscription asks for must be there."""
    match document:
        case Subscription(delivery=Push(credential=OAuth(provider=provider))):
            if provider_of(provider, after) is None:
                yield "delivery.credential.provider", f"there is no provider {provider}"


def provider_named_by(subscription: Subscription) -> Name | None:
    """The provider that a subscription asks for its tokens."""
    match subscription.delivery:
        case Push(credential=OAuth(provider=provider)):
            with suppress(Malformed):
                return parse_name(provider)
    return None


def provider_of(name: str, snapshot: Snapshot) -> Provider | None:
    """The provider of that name that is in force."""
    try:
        return snapshot.providers.get(parse_name(name))
    except Malformed:
        return None


def _is_signing_key(key: SigningKey) -> bool:
    return is_sealed(key.secret) or key.secret.startswith(("whsec_", "whsk_"))


def _secret(member: str, text: str, form: re.Pattern[str]) -> Iterator[Fault]:
    if is_sealed(text):
        return
    if len(text) > HEADER_CHARACTERS or (text and not form.fullmatch(text)):
        yield member, f"a secret is one line of at most {HEADER_CHARACTERS} characters"
    elif not text and form is _VISIBLE:
        yield member, "it is empty"


def _address(member: str, url: str) -> Iterator[Fault]:
    fault = url_fault(url)
    if fault:
        yield member, fault


def _provider_name(name: str) -> Iterator[Fault]:
    try:
        parse_name(name)
    except Malformed as error:
        yield "provider", str(error)
