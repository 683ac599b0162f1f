"""The hub over HTTP/1.1 on one kept connection: JSON in, JSON out; a refusal becomes an error that reads as a sentence."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tidings.errors import HubProblem, HubUnreachable, Misconfigured

JSON = "application/json"
DEFAULT_URL = "http://127.0.0.1:8484"

MERGE_PATCH = "application/merge-patch+json"

Query = Mapping[str, object]

_LOST = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
"""A kept connection was closed at the other end."""


class HubClient:
    """One hub as seen by one caller. Not to be shared between threads."""

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, timeout: float = 60.0) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misconfigured("the address of the hub cannot be read", found=url, expected=DEFAULT_URL)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._secure, self._address, self._path = (
            parts.scheme == "https",
            parts.netloc.rpartition("@")[2],
            parts.path.rstrip("/"),
        )
        self._token = token
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, query: Query | None = None) -> Any:
        """What the hub has at `path`."""
        return _decoded(self.send("GET", path, query=query))

    def put(self, path: str, document: Any, query: Query | None = None) -> Any:
        """Put a JSON document."""
        return _decoded(self.send("PUT", path, json.dumps(document).encode(), query=query))

    def patch(self, path: str, members: Any, query: Query | None = None) -> Any:
        """Change these members of a JSON document, or create it with them."""
        return _decoded(self.send("PATCH", path, json.dumps(members).encode(), content_type=MERGE_PATCH, query=query))

    def post(self, path: str, document: Any, query: Query | None = None) -> Any:
        """Post a JSON document."""
        return _decoded(self.send("POST", path, json.dumps(document).encode(), query=query))

    def delete(self, path: str, query: Query | None = None) -> Any:
        """Delete what is at `path`."""
        return _decoded(self.send("DELETE", path, query=query))

    def decoded(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = JSON, query: Query | None = None
    ) -> Any:
        """One request with a body of any type; its answer as JSON."""
        return _decoded(self.send(method, path, body, content_type=content_type, query=query))

    def lines(self, path: str, query: Query | None = None) -> Iterator[Any]:
        """The JSON values of an NDJSON answer."""
        for line in self.send("GET", path, query=query).splitlines():
            if line.strip():
                yield json.loads(line)

    def send(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = JSON, query: Query | None = None
    ) -> bytes:
        """One request; the body of its answer. Raises HubProblem or HubUnreachable.

        On a kept connection that the hub has closed meanwhile it is tried once more, but never an event: that might arrive twice.
        """
        target = self._path + path + _query(query)
        headers = {"accept": "*/*", "user-agent": "tidings"}
        if body is not None:
            headers["content-type"] = content_type
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try_again = self._connection is not None and method != "POST"
        while True:
            try:
                return self._exchange(method, target, body, headers)
            except _LOST as error:
                self.close()
                if not try_again:
                    raise self._unreachable(error) from error
                try_again = False

    def _exchange(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self._address, timeout=self._timeout)
        try:
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except _LOST:
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._unreachable(error) from error
        if response.status // 100 != 2:
            raise _problem(response.status, response.reason, answer)
        return answer

    def _unreachable(self, error: Exception) -> HubUnreachable:
        why = (
            "it took too long to answer"
            if isinstance(error, TimeoutError)
            else (getattr(error, "strerror", None) or str(error))
        )
        return HubUnreachable(
            f"no hub answers at {self.url} ({why}); start one with `tidings serve`, or say where it is with --url or TIDINGS_URL"
        )

    def close(self) -> None:
        """Let go of the connection; the next call makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_about_events(error: HubProblem) -> bool:
    """Whether publishing was refused because of what was published: the same request is refused again, without it is taken."""
    return error.problem.get("code") in ("invalid-event", "malformed", "too-large", "duplicate-event")


def is_passing(error: HubProblem) -> bool:
    """Whether the hub, or what is before it, may take the same request later."""
    status = error.problem.get("status")
    return isinstance(status, int) and (status == 429 or status >= 500)


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe=":/")


def _query(query: Query | None) -> str:
    listed = {key: value if isinstance(value, list) else [value] for key, value in (query or {}).items()}
    given = [(key, _word(value)) for key, values in listed.items() for value in values if value is not None]
    return f"?{urlencode(given)}" if given else ""


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decoded(answer: bytes) -> Any:
    if not answer.strip():
        return None
    try:
        return json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise HubProblem("what answers there is no hub: its answer is no JSON", {}) from error


def _problem(status: int, reason: str, answer: bytes) -> HubProblem:
    """The refusal as an error. What does not speak problem+json is shown by its status."""
    try:
        problem = json.loads(answer)
    except (ValueError, RecursionError):
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    sentence = problem.get("detail") or problem.get("title") or reason
    return HubProblem(str(sentence), {"status": status, **problem})
