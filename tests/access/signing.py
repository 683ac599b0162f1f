"""An issuer of signed tokens for tests: its own keys, its tokens, and a server on loopback that shows its keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tidings.access.key_file import KeyFile, Pair, new_pair

NOW = 1_700_000_000
"""What ManualClock says at first, in seconds."""

ISSUER, AUDIENCE = "https://login.example", "tidings"


class Signer:
    """One key pair. `alg` "" leaves the algorithm out of the shown key."""

    def __init__(self, kid: str = "k1", kind: str = "EC", alg: str = "") -> None:
        self.kid, self.kind = kid, kind
        match kind:
            case "RSA":
                self._private: Any = rsa.generate_private_key(65537, 2048)
                shown = RSAAlgorithm.to_jwk(self._private.public_key(), as_dict=True)
            case "EC":
                self._private = ec.generate_private_key(ec.SECP256R1())
                shown = ECAlgorithm.to_jwk(self._private.public_key(), as_dict=True)
            case _:
                self._private = ed25519.Ed25519PrivateKey.generate()
                shown = OKPAlgorithm.to_jwk(self._private.public_key(), as_dict=True)
        self.jwk: dict[str, Any] = {**shown, "kid": kid, "use": "sig", **({"alg": alg} if alg else {})}

    def token(self, alg: str | None = None, *, kid: str | None = "", without: tuple[str, ...] = (), **claims: Any) -> str:
        """A token that a hub accepts, but for what is given otherwise."""
        plain = {"sub": "shop", "iss": ISSUER, "aud": AUDIENCE, "nbf": NOW - 10, "exp": NOW + 600, "scope": "tidings:publish"}
        body = {name: value for name, value in {**plain, **claims}.items() if name not in without}
        named = self.kid if kid == "" else kid
        algorithm = alg or {"RSA": "RS256", "EC": "ES256"}.get(self.kind, "EdDSA")
        return jwt.encode(body, self._private, algorithm, headers={"kid": named} if named else None)


class KeyServer:
    """Shows keys; counts how often it was asked. `status` other than 200 answers with that instead."""

    def __init__(self, *jwks: dict[str, Any]) -> None:
        self.jwks: list[dict[str, Any]] = list(jwks)
        self.asked = 0
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: bytes | None = None
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[KeyServer]:
        owner = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked += 1
                self.send_response(owner.status)
                for name, value in owner.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(owner.body if owner.body is not None else json.dumps({"keys": owner.jwks}).encode())

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{server.server_port}/keys"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class OneKey(KeyFile):
    """A key of the hub that is kept nowhere."""

    def __init__(self) -> None:
        self._pair = new_pair()

    @property
    def stamp(self) -> object:
        return 1

    def pair(self, known: Pair | None = None) -> Pair:
        return self._pair

    def public(self) -> list[dict[str, Any]]:
        return [self._pair.public]
