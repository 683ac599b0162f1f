"""Just enough of the Gherkin language to read the HTTP scenarios of the CloudEvents conformance features."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = re.compile(r'"""\n(.*?)"""', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of a scenario outline: a raw request and what it must be read as."""

    title: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    attributes: dict[str, str]
    data: str


def scenarios(feature: str) -> Iterator[Scenario]:
    """Every example of every outline of a feature."""
    for outline in feature.split("Scenario Outline:")[1:]:
        title, _, steps = outline.partition("\n")
        steps, _, examples = steps.partition("Examples:")
        header, *rows = _rows(examples)
        for row in rows:
            filled, named = steps, title
            for column, value in zip(header, row, strict=True):
                filled, named = filled.replace(f"<{column}>", value), named.replace(f"<{column}>", value)
            yield _scenario(named.strip(), filled)


def _scenario(title: str, steps: str) -> Scenario:
    request, data = (textwrap.dedent(block) for block in _BLOCK.findall(steps))
    head, _, body = request.partition("\n\n")
    headers = [line.split(": ", 1) for line in head.splitlines()[1:]]
    table = _rows(steps.partition("the attributes are:")[2])[1:]
    return Scenario(
        title=title,
        headers=[(name.lower().encode(), value.encode()) for name, value in headers],
        body=body.encode(),
        attributes=dict(map(tuple, table)),
        data=data,
    )


def _rows(text: str) -> list[list[str]]:
    lines = (line.strip() for line in text.splitlines())
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
