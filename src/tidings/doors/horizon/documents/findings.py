"""A part of a document with its path: reading it tells everything that is wrong or odd at once, never only the first thing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from tidings.errors import FilterSyntaxError, plain_number, shortened


class Finding(NamedTuple):
    """Something about one place of one document."""

    path: str
    reason: str


def near_miss(name: str, known: Collection[str]) -> str | None:
    """Which of these names was probably meant: the same but for letter case, dashes or a few letters."""
    by_letters = {_letters(one): one for one in known}
    near = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=0.75)
    return by_letters[near[0]] if near else None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))[:100]


@dataclass(slots=True)
class Findings:
    """What was found in one document: faults refuse it, conflicts contradict what stands, warnings are only told.

    `stands`: it was taken once and is only read again. What would be refused today must not end what it asked for then.
    """

    faults: list[Finding] = field(default_factory=list)
    conflicts: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    stands: bool = False


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """What a document holds at a path. Reading what cannot be read gives None and leaves a fault."""

    raw: Any
    path: str
    findings: Findings
    beside: Collection[str] = ()
    """What else the document has where this is left out, to find it misspelled."""

    def fault(self, reason: str) -> None:
        near = difflib.get_close_matches(self.path.rpartition(".")[2], self.beside, n=1, cutoff=0.8)
        hint = f"; there is a member {near[0]}, is it meant?" if near else ""
        self.findings.faults.append(Finding(self.path, reason + hint))

    def slip(self, reason: str) -> None:
        """A fault of a new document that is probably a slip of the pen; read all the same where it stands already."""
        if self.findings.stands:
            self.warn(reason)
        else:
            self.fault(reason)

    def conflict(self, reason: str) -> None:
        self.findings.conflicts.append(Finding(self.path, reason))

    def warn(self, reason: str) -> None:
        self.findings.warnings.append(Finding(self.path, reason))

    @property
    def given(self) -> bool:
        return self.raw is not None

    def member(self, name: str) -> DocumentPart:
        """The member of that name; one that is left out has no value."""
        members = self.raw if isinstance(self.raw, Mapping) else {}
        beside = () if name in members else tuple(members)
        return DocumentPart(members.get(name), f"{self.path}.{name}" if self.path else name, self.findings, beside)

    def is_object(self) -> bool:
        """Whether it is an object; a fault if not."""
        if isinstance(self.raw, Mapping):
            return True
        self.fault("is missing" if self.raw is None else "must be an object")
        return False

    def items(self) -> Iterator[DocumentPart]:
        """The elements of a list; nothing when it is left out."""
        if self.raw is None:
            return
        if not isinstance(self.raw, list):
            self.fault("must be a list")
            return
        for number, one in enumerate(self.raw):
            yield DocumentPart(one, f"{self.path}[{number}]", self.findings)

    def text(self, *, needed: bool = True) -> str | None:
        """A text that is not blank."""
        if self.raw is None:
            if needed:
                self.fault("is missing")
            return None
        if not isinstance(self.raw, str) or not self.raw.strip():
            self.fault(f"must be a text, found {shortened(self.raw)}")
            return None
        return self.raw

    def texts(self) -> tuple[str, ...]:
        """A list of different texts."""
        found = [text for item in self.items() if (text := item.text()) is not None]
        if len(set(found)) < len(found):
            self.fault("names something twice")
        return tuple(dict.fromkeys(found))

    def word(self, words: Mapping[str, Any], default: Any = None) -> Any:
        """One of these words, in any letter case, as what it stands for."""
        if self.raw is None:
            return default
        found = words.get(self.raw.lower()) if isinstance(self.raw, str) else None
        if found is None:
            self.fault(f"must be one of {', '.join(words)}, found {shortened(self.raw)}")
            return default
        return found

    def unless_one_of(self, values: Collection[str]) -> None:
        """A fault unless it is one of these, letter by letter."""
        if self.raw is None:
            self.fault(f"is missing; it is {' or '.join(values)}")
        elif self.raw not in values:
            self.fault(f"must be {' or '.join(values)}, found {shortened(self.raw)}")

    def flag(self) -> bool:
        if self.raw is None or isinstance(self.raw, bool):
            return bool(self.raw)
        self.fault(f"must be true or false, found {shortened(self.raw)}")
        return False

    def number(self, low: float, high: float, *, whole: bool = True) -> float | None:
        """A number within these bounds, both included."""
        if self.raw is None:
            return None
        fits = isinstance(self.raw, int) or (isinstance(self.raw, float) and not whole)
        if isinstance(self.raw, bool) or not fits or not low <= self.raw <= high:
            kind, bounds = "whole number" if whole else "number", f"{plain_number(low)} to {plain_number(high)}"
            self.fault(f"must be a {kind} from {bounds}, found {shortened(self.raw)}")
            return None
        found: float = self.raw
        return found

    def only(
        self, known: Collection[str], guarded: Collection[str] = (), elsewhere: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Warn about members that nobody reads (HOR-12); what looks like one of `guarded`, misspelled, is a fault.

        Guarded is what protects data: left out by mistake, more would be delivered than was meant. The same holds of what
        stands at the wrong level: `elsewhere` says where such members belong.
        """
        for name in self.raw if isinstance(self.raw, Mapping) else ():
            if name in known:
                continue
            meant, other = near_miss(name, known), near_miss(name, elsewhere)
            if name in elsewhere or (other and meant not in guarded):
                self.member(name).slip(f"has no effect here; it belongs into {elsewhere[other or name]}")
            elif meant in guarded:
                self.member(name).slip(f"is not known; did you mean {meant}?")
            else:
                hint = f"; did you mean {meant}?" if meant else ""
                self.member(name).warn(f"is not known and has no effect{hint}")

    def filtering(self, make: Callable[[], object]) -> bool:
        """Whether a filter can be made; if not, the fault says where in it."""
        try:
            make()
        except FilterSyntaxError as error:
            inside, _, rest = error.at.partition(", ")
            path = ".".join(filter(None, (self.path, inside)))
            reason = FilterSyntaxError(error.what, at=rest, found=error.found, expected=error.expected)
            self.findings.faults.append(Finding(path, str(reason)))
            return False
        return True
