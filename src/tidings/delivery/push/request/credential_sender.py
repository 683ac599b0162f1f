"""Attempts of subscriptions that show who they are: credentials first, then a signature over the body, a new token after a 401."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tidings.access.secret_box import Box, Unreadable
from tidings.clock import Clock
from tidings.delivery.push.egress.endpoints import Endpoints
from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.request.credentials import UNREADABLE, Access, Credentials, Failure, Shown
from tidings.delivery.push.request.signatures import Signer, message_id, signature_headers, signer_of
from tidings.registry.credentials import SigningKey
from tidings.registry.rules.credentials import secret_place

UNAUTHORIZED = 401
REMEMBERED = 50_000


class CredentialSender(Sender):
    """A Sender that knows what each target is to be shown. Targets that are shown nothing cost nothing more."""

    def __init__(self, ways: Endpoints, clock: Clock, credentials: Credentials, box: Box) -> None:
        super().__init__(ways, clock)
        self._clock = clock
        self._credentials = credentials
        self._box = box
        self._signers: dict[tuple[str, str], Signer] = {}

    async def send(self, target: SendTarget, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Make one attempt; a refused token may make it two requests."""
        access = target.access
        if access is None:
            return await super().send(target, headers, body)
        shown = await self._credentials.headers_for(access)
        if isinstance(shown, Failure):
            return Outcome(cause=shown.reason)
        outcome = await self._show(target, access, shown, headers, body)
        if outcome.status == UNAUTHORIZED:
            again = await self._credentials.renewed(access, shown)
            if isinstance(again, Failure):
                return Outcome(cause=again.reason, duration=outcome.duration)
            if again is not None:
                outcome = await self._show(target, access, again, headers, body)
        if outcome.status is not None and 200 <= outcome.status < 300:
            self._credentials.accepted(access)
        return outcome

    async def _show(self, target: SendTarget, access: Access, shown: Shown, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            signed = self._signed(access, headers, body)
        except (Unreadable, ValueError):
            return Outcome(cause=UNREADABLE)
        to = target.with_query(shown.query) if shown.query else target
        return await super().send(to, {**shown.usual, **headers, **shown.headers, **signed}, body)

    def _signed(self, access: Access, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        if not access.signing:
            return {}
        now = self._clock.now()
        keys = [self._signer(access.owner, key) for key in access.signing if key.until is None or key.until > now]
        return signature_headers(_id_of(headers, body), now, body, keys) if keys else {}

    def _signer(self, owner: str, key: SigningKey) -> Signer:
        known = self._signers.get((owner, key.secret))
        if known is None:
            if len(self._signers) >= REMEMBERED:
                self._signers.clear()
            known = signer_of(self._box.open(secret_place(owner, "signing"), key.secret))
            self._signers[owner, key.secret] = known
        return known


def _id_of(headers: Mapping[str, str], body: bytes) -> str:
    """The same for every try. What has no delivery id of its own is known by its body."""
    delivery = headers.get("tidings-delivery-id")
    return message_id(delivery if delivery else hashlib.sha256(body).hexdigest()[:32])
