"""Refusals as Hermes writes them (HER-05 to HER-07): `{"message", "code"}`, each code with its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from tidings import errors
from tidings.errors import Rejected, TidingsError, Unavailable
from tidings.problems import status_of

CONTENT_TYPE = b"application/json"
CHALLENGE = (b"www-authenticate", b'Bearer realm="hermes"')
MISTAKE = "the hub made a mistake; its log has the details"


class ErrorCode(StrEnum):
    """Hermes' words for what is wrong."""

    FORMAT_ERROR = "FORMAT_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    TOPIC_ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"
    TOPIC_NOT_EXISTS = "TOPIC_NOT_EXISTS"
    TOPIC_NOT_EMPTY = "TOPIC_NOT_EMPTY"
    GROUP_ALREADY_EXISTS = "GROUP_ALREADY_EXISTS"
    GROUP_NOT_EXISTS = "GROUP_NOT_EXISTS"
    GROUP_NOT_EMPTY = "GROUP_NOT_EMPTY"
    GROUP_NAME_IS_INVALID = "GROUP_NAME_IS_INVALID"
    SUBSCRIPTION_ALREADY_EXISTS = "SUBSCRIPTION_ALREADY_EXISTS"
    SUBSCRIPTION_NOT_EXISTS = "SUBSCRIPTION_NOT_EXISTS"
    OAUTH_PROVIDER_ALREADY_EXISTS = "OAUTH_PROVIDER_ALREADY_EXISTS"
    OAUTH_PROVIDER_NOT_EXISTS = "OAUTH_PROVIDER_NOT_EXISTS"
    OWNER_SOURCE_NOT_FOUND = "OWNER_SOURCE_NOT_FOUND"
    SCHEMA_BAD_REQUEST = "SCHEMA_BAD_REQUEST"
    SCHEMA_VERSION_DOES_NOT_EXIST = "SCHEMA_VERSION_DOES_NOT_EXIST"
    AVRO_SCHEMA_INVALID_METADATA = "AVRO_SCHEMA_INVALID_METADATA"
    AUTH_ERROR = "AUTH_ERROR"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    OPERATION_DISABLED = "OPERATION_DISABLED"
    TIMEOUT = "TIMEOUT"
    THROUGHPUT_QUOTA_VIOLATION = "THROUGHPUT_QUOTA_VIOLATION"
    SENDING_TO_KAFKA_TIMEOUT = "SENDING_TO_KAFKA_TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    OTHER = "OTHER"


_STATUS: Mapping[ErrorCode, HTTPStatus] = {
    ErrorCode.GROUP_NOT_EMPTY: HTTPStatus.FORBIDDEN,
    ErrorCode.TOPIC_NOT_EMPTY: HTTPStatus.FORBIDDEN,
    ErrorCode.AUTH_ERROR: HTTPStatus.FORBIDDEN,
    ErrorCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.GROUP_NOT_EXISTS: HTTPStatus.NOT_FOUND,
    ErrorCode.TOPIC_NOT_EXISTS: HTTPStatus.NOT_FOUND,
    ErrorCode.OAUTH_PROVIDER_NOT_EXISTS: HTTPStatus.NOT_FOUND,
    ErrorCode.OWNER_SOURCE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.OPERATION_DISABLED: HTTPStatus.NOT_ACCEPTABLE,
    ErrorCode.TIMEOUT: HTTPStatus.REQUEST_TIMEOUT,
    ErrorCode.THROUGHPUT_QUOTA_VIOLATION: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.INTERNAL_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.SENDING_TO_KAFKA_TIMEOUT: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Every other code is a 400."""


class HermesAnswer(NamedTuple):
    """A refusal as it is answered."""

    status: int
    message: str
    code: ErrorCode
    retry_after: int | None = None

    def body(self) -> bytes:
        return msgspec.json.encode({"message": self.message, "code": self.code})

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""
        headers = [(b"content-type", CONTENT_TYPE)]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append(CHALLENGE)
        return headers


class HermesRefused(Exception):
    """A refusal on its way to who asked."""

    def __init__(self, answer: HermesAnswer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def refused(code: ErrorCode, message: str, status: HTTPStatus | None = None) -> HermesRefused:
    """The refusal of this code, to be raised."""
    return HermesRefused(HermesAnswer(status or _STATUS.get(code, HTTPStatus.BAD_REQUEST), message, code))


def invalid(faults: Iterable[tuple[str, str]]) -> HermesRefused:
    """The refusal of fields: `path text` of each, joined by `; `."""
    return refused(ErrorCode.VALIDATION_ERROR, "; ".join(f"{path} {text}" for path, text in faults))


def no_group(group: str) -> HermesRefused:
    return refused(ErrorCode.GROUP_NOT_EXISTS, f"Group {group} does not exist")


def no_topic(topic: str) -> HermesRefused:
    return refused(ErrorCode.TOPIC_NOT_EXISTS, f"Topic {topic} does not exist")


def no_subscription(topic: str, subscription: str) -> HermesRefused:
    told = f"Subscription {subscription} for topic {topic} does not exist."
    return refused(ErrorCode.SUBSCRIPTION_NOT_EXISTS, told)


def no_provider(provider: str) -> HermesRefused:
    return refused(ErrorCode.OAUTH_PROVIDER_NOT_EXISTS, f"OAuth provider {provider} does not exist")


_CODES: Sequence[tuple[type[TidingsError], ErrorCode]] = (
    (errors.InvalidDocument, ErrorCode.VALIDATION_ERROR),
    (errors.InvalidEvent, ErrorCode.VALIDATION_ERROR),
    (errors.FilterSyntaxError, ErrorCode.VALIDATION_ERROR),
    (errors.TooLarge, ErrorCode.VALIDATION_ERROR),
    (errors.Malformed, ErrorCode.FORMAT_ERROR),
    (errors.Unauthenticated, ErrorCode.AUTH_ERROR),
    (errors.Forbidden, ErrorCode.PERMISSION_DENIED),
    (errors.Rejected, ErrorCode.OTHER),
    (errors.Unavailable, ErrorCode.OTHER),
    (errors.TidingsError, ErrorCode.INTERNAL_ERROR),
)
_AS_BAD_REQUEST = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.CONFLICT)
"""Statuses that Hermes does not know."""


def answer_of(error: TidingsError) -> HermesAnswer:
    """An error of the hub as this door tells it."""
    status = status_of(error)
    faults = error.faults if isinstance(error, Rejected) else ()
    told = "; ".join(f"{fault.attribute} {fault.detail}" for fault in faults) or str(error)
    return HermesAnswer(
        status=HTTPStatus.BAD_REQUEST if status in _AS_BAD_REQUEST else status,
        message=told,
        code=next(code for kind, code in _CODES if isinstance(error, kind)),
        retry_after=error.retry_after if isinstance(error, Unavailable) else None,
    )


def mistake() -> HermesAnswer:
    """What is told when the hub itself made a mistake."""
    return HermesAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, MISTAKE, ErrorCode.INTERNAL_ERROR)
