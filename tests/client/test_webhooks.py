from __future__ import annotations

import subprocess
import sys

import pytest

from tidings.access.signing_keys import new_key
from tidings.client import NotVerified, verify
from tidings.clock import SECOND, Instant
from tidings.delivery.push.request.signatures import sign, signature_headers, signer_of
from tidings.registry.credentials import SigningVersion

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = new_key(SigningVersion.V1, lambda n: b"o" * n)
PAIR = new_key(SigningVersion.V1A, lambda n: b"p" * n)


def headers(signature: str = SIGNED, **others: str) -> dict[str, str]:
    plain = {"Webhook-Id": ID, "Webhook-Timestamp": str(AT), "Webhook-Signature": signature}
    return {name: value for name, value in {**plain, **others}.items() if value}


def holds(headers: dict[str, str], *keys: str, body: bytes = BODY, now: float = AT) -> bool:
    try:
        verify(body, headers, keys or SECRET, now=now)
    except NotVerified as error:
        assert "MfKQ9r8G" not in str(error)
        return False
    return True


def test_the_published_vector_holds() -> None:
    """SW-11."""
    assert sign(ID, AT, BODY, [signer_of(SECRET)]) == SIGNED
    assert holds(headers())
    assert holds(headers(), SECRET.removeprefix("whsec_"))


@pytest.mark.parametrize(
    "changed",
    [
        headers(SIGNED[:-1]),
        headers(SIGNED[:12]),
        headers("v1,"),
        headers("v1"),
        headers("v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        headers("v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        headers("v1,!!!!"),
        headers(**{"Webhook-Id": ""}),
        headers(**{"Webhook-Timestamp": ""}),
        headers(**{"Webhook-Signature": ""}),
        headers(**{"Webhook-Id": "msg_other"}),
        headers(**{"Webhook-Timestamp": str(AT + 1)}),
        headers(**{"Webhook-Timestamp": "soon"}),
        headers(**{"Webhook-Timestamp": "9" * 400}),
    ],
)
def test_what_was_changed_is_refused(changed: dict[str, str]) -> None:
    assert not holds(changed)


@pytest.mark.parametrize(("now", "fine"), [(AT + 300, True), (AT - 300, True), (AT + 301, False), (AT - 301, False)])
def test_a_delivery_is_good_for_five_minutes(now: float, fine: bool) -> None:
    assert holds(headers(), now=now) is fine


def test_a_changed_body_is_refused() -> None:
    assert not holds(headers(), body=BODY + b" ")


def test_every_signature_is_tried_with_every_key() -> None:
    both = f"v9,abc {SIGNED} {sign(ID, AT, BODY, [signer_of(PAIR.secret)])}"
    assert holds(headers(both))
    assert holds(headers(both), OTHER.secret, SECRET)
    assert holds(headers(both), PAIR.public)
    assert not holds(headers(both), OTHER.secret)


def test_public_keys_check_what_private_keys_sign() -> None:
    signed = signature_headers("msg_1", Instant(AT * SECOND), BODY, [signer_of(PAIR.secret)])
    assert signed["webhook-signature"].startswith("v1a,")
    assert holds(dict(signed), PAIR.public)
    assert not holds({**signed, "webhook-signature": f"v1a,{'A' * 86}=="}, PAIR.public)
    assert not holds(dict(signed), f"whpk_{OTHER.secret.removeprefix('whsec_')}")


@pytest.mark.parametrize("key", ["whsk_AAAA", "whsec_???", "other_AAAA"])
def test_a_key_that_cannot_be_read_is_refused(key: str) -> None:
    with pytest.raises(NotVerified, match="key"):
        verify(BODY, headers(), key, now=AT)


def test_two_keys_are_separated_by_one_space_and_newest_first() -> None:
    signed = sign(ID, AT, BODY, [signer_of(OTHER.secret), signer_of(SECRET)])
    assert signed.split(" ")[1] == SIGNED and len(signed.split(" ")) == 2


def test_the_library_of_standard_webhooks_agrees() -> None:
    """SW-03, CE-C4: also while two keys sign."""
    from datetime import UTC, datetime

    from standardwebhooks.webhooks import Webhook

    now = int(datetime.now(UTC).timestamp())
    signed = signature_headers(ID, Instant(now * SECOND), BODY, [signer_of(OTHER.secret), signer_of(SECRET)])
    assert Webhook(SECRET).verify(BODY.decode(), dict(signed)) == {"test": 2432232314}
    assert Webhook(OTHER.secret).verify(BODY.decode(), dict(signed)) == {"test": 2432232314}
    theirs = {"webhook-id": ID, "webhook-timestamp": str(now)}
    theirs["webhook-signature"] = Webhook(SECRET).sign(ID, datetime.fromtimestamp(now, UTC), BODY.decode())
    verify(BODY, theirs, SECRET)


def test_shared_secrets_need_nothing_but_the_standard_library() -> None:
    program = "import sys, tidings.client; sys.exit('cryptography' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
