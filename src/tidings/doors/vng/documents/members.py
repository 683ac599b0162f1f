"""Reads the members of a document and notes everything that is wrong with them, so that one answer can name it all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tidings.doors.vng.refusals import param
from tidings.errors import EventFault, InvalidDocument, Malformed, shortened
from tidings.events import json_text
from tidings.events.attribute_rules import text_problem
from tidings.registry.rules.callbacks import url_fault

TEXT_CHARACTERS = 4096

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def object_in(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Malformed."""
    value = json_text.parse(body)
    if not isinstance(value, dict):
        raise Malformed(f"expected a JSON object, found {json_text.kind_of(value)}")
    return value


def has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None


class DocumentReader:
    """The members of one object. `at` is its place in the whole document; null counts as left out everywhere."""

    def __init__(self, members: Mapping[str, Any], faults: list[EventFault], at: str = "") -> None:
        self.members = members
        self.faults = faults
        self._at = f"{at}." if at else ""

    def fault(self, name: str, code: str, reason: str) -> None:
        self.faults.append(param(f"{self._at}{name}", code, reason))

    def text(self, name: str, *, required: bool = False) -> str:
        """A text of at least one character; empty where there is none."""
        value = self.members.get(name)
        if value is None:
            if required:
                self.fault(name, "required", "it is required")
            return ""
        problem = text_problem(value)
        if problem is not None:
            self.fault(name, "invalid", problem[1])
            return ""
        if len(value) > TEXT_CHARACTERS:
            self.fault(name, "invalid", f"at most {TEXT_CHARACTERS} characters")
        return str(value)

    def checked(self, name: str, fault_of: Callable[[str], str | None], *, required: bool = False) -> str:
        """A text that passes this check too."""
        text = self.text(name, required=required)
        if text and (fault := fault_of(text)) is not None:
            self.fault(name, "invalid", fault)
        return text

    def address(self, name: str, *, required: bool = False) -> str:
        """An absolute http or https address."""
        return self.checked(name, url_fault, required=required)

    def texts(self, name: str, *, empty: bool = False) -> list[str]:
        """A list of texts, none of them empty unless that is allowed."""
        value = self.members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, "invalid", f"expected a list of texts, found {json_text.kind_of(value)}")
            return []
        for n, one in enumerate(value):
            if (problem := text_problem(one)) is not None and not (empty and one == ""):
                self.fault(f"{name}.{n}", "invalid", problem[1])
        return [one for one in value if isinstance(one, str)]

    def map(self, name: str) -> dict[str, str]:
        """An object of texts."""
        value = self.object(name)
        for key, text in value.items():
            if not isinstance(text, str):
                self.fault(f"{name}.{key[:100]}", "invalid", f"expected a text, found {shortened(text)}")
        return {key: text for key, text in value.items() if isinstance(text, str)}

    def object(self, name: str) -> dict[str, Any]:
        """An object; an empty one where there is none."""
        value = self.members.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(name, "invalid", f"expected an object, found {json_text.kind_of(value)}")
            return {}
        return value

    def refuse(self) -> None:
        """Raise InvalidDocument where anything was wrong."""
        if self.faults:
            raise InvalidDocument(self.faults)
