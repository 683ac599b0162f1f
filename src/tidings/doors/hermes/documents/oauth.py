"""OAuth providers and the policies that use them (HER-128, HER-129). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.doors.hermes.documents.fields import Fields, fields_of, refuse_faults
from tidings.doors.hermes.names import provider_name, word_fault
from tidings.registry.credentials import GrantType, OAuth
from tidings.registry.model import Provider
from tidings.registry.rules.callbacks import url_fault

MASK = "******"
CLIENT_CREDENTIALS, PASSWORD = "clientCredentials", "password"


def provider_of_document(raw: object, standing: Provider | None) -> Provider:
    """The provider that a document describes; a masked secret is the one that stands. Raises HermesRefused."""
    fields = fields_of(raw, "OAuthProvider")
    name = fields.text("name", needed=True)
    if name and (fault := word_fault(name)):
        fields.fault("name", fault)
    endpoint, secret = fields.text("tokenEndpoint", needed=True), fields.text("clientSecret", needed=True)
    if endpoint and (fault := url_fault(endpoint)):
        fields.fault("tokenEndpoint", fault)
    if secret == MASK:
        if standing is None:
            fields.fault("clientSecret", "must be the secret itself: there is none to keep")
        else:
            secret = standing.client_secret
    provider = Provider(
        name=provider_name(name),
        token_endpoint=endpoint,
        client_id=fields.text("clientId", needed=True),
        client_secret=secret,
        first_delay=fields.whole("tokenRequestInitialDelay", 0, 3_600_000, 100) / 1000,
        longest_delay=fields.whole("tokenRequestMaxDelay", 0, 3_600_000, 30_000) / 1000,
        request_timeout=fields.whole("requestTimeout", 100, 60_000, 1000) / 1000,
        socket_timeout=fields.whole("socketTimeout", 0, 60_000, 0) / 1000,
        parameters_in_query=fields.word("parametersIn", ("body", "query"), "body") == "query",
    )
    refuse_faults(fields)
    return provider


def provider_shown(provider: Provider) -> dict[str, Any]:
    """A provider as Hermes shows it."""
    return {
        "name": provider.name.name,
        "tokenEndpoint": provider.token_endpoint,
        "clientId": provider.client_id,
        "clientSecret": MASK,
        "tokenRequestInitialDelay": round(provider.first_delay * 1000),
        "tokenRequestMaxDelay": round(provider.longest_delay * 1000),
        "requestTimeout": round(provider.request_timeout * 1000),
        "socketTimeout": round(provider.socket_timeout * 1000),
        **({"parametersIn": "query"} if provider.parameters_in_query else {}),
    }


def oauth_policy(fields: Fields) -> dict[str, Any] | None:
    """The policy of a subscription's document, its password still in it."""
    if fields.raw.get("oAuthPolicy") is None:
        return None
    member = fields.below("oAuthPolicy")
    policy = {
        "grantType": member.word("grantType", (CLIENT_CREDENTIALS, PASSWORD), ""),
        "providerName": member.text("providerName", needed=True),
        "scope": member.text("scope"),
        "username": member.text("username"),
        "password": member.text("password"),
    }
    if not policy["grantType"]:
        member.fault("grantType", "must not be null")
    if policy["grantType"] == PASSWORD:
        for name in ("username", "password"):
            if not policy[name]:
                member.fault(name, "must not be null")
    return {name: value for name, value in policy.items() if value}


def oauth_of(policy: Mapping[str, Any], standing: OAuth | None) -> OAuth | None:
    """The credential of a policy; None where its password is masked and nothing stands that it could mean."""
    secret = policy.get("password", "")
    by_password = policy["grantType"] == PASSWORD
    if by_password and secret == MASK:
        if standing is None or standing.grant is not GrantType.PASSWORD:
            return None
        secret = standing.password
    return OAuth(
        provider=str(provider_name(policy["providerName"])),
        grant=GrantType.PASSWORD if by_password else GrantType.CLIENT_CREDENTIALS,
        scope=policy.get("scope", ""),
        user=policy.get("username", "") if by_password else "",
        password=secret if by_password else "",
    )
