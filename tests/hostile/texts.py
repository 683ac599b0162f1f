"""Hostile texts by the language they are written in. Each is at most as long as the doors let in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

LONGEST = 4 << 20
DEPTHS = (200, 40_000, 400_000)

Make = Callable[[], str]


def repeated(piece: str, length: int = LONGEST) -> str:
    """As many of these as fit."""
    return piece * (length // len(piece.encode()))


def nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def _nestings(kinds: Mapping[str, tuple[str, str]]) -> dict[str, Make]:
    made: dict[str, Make] = {}
    for name, (opening, closing) in kinds.items():
        for depth in DEPTHS:
            if depth * len(opening) <= LONGEST:
                made[f"{depth} {name}, open"] = lambda opening=opening, depth=depth: opening * depth  # type: ignore[misc]
            if depth * len(opening + closing) <= LONGEST:
                made[f"{depth} {name}"] = lambda o=opening, c=closing, depth=depth: nested(o, "1", c, depth)  # type: ignore[misc]
    return made


JSON: dict[str, Make] = {
    **_nestings({"lists": ("[", "]"), "objects": ('{"a":', "}"), "both": ('[{"a":', "}]")}),
    "numbers": lambda: f"[{repeated('1,', LONGEST - 9)}1]",
    "empty objects": lambda: f"[{repeated('{},', LONGEST - 9)}1]",
    "members": lambda: "{" + ",".join(f'"{n}":0' for n in range(300_000)) + "}",
    "one member again": lambda: "{" + repeated('"a":0,', LONGEST - 9) + '"a":0}',
    "a long number": lambda: repeated("1"),
    "a long fraction": lambda: "0." + repeated("1", LONGEST - 9),
    "a large exponent": lambda: "1e" + repeated("9", 100_000),
    "infinity": lambda: '{"a": 1e400}',
    "a long text": lambda: f'"{repeated("a", LONGEST - 9)}"',
    "escapes": lambda: f'"{repeated(chr(92) + "u0041", LONGEST - 9)}"',
    "half surrogates": lambda: f'"{repeated(chr(92) + "ud800", LONGEST - 9)}"',
    "quotes": lambda: f'"{repeated(chr(92) + chr(34), LONGEST - 9)}"',
    "white space": lambda: repeated(" "),
    "no end": lambda: '"' + repeated("a", LONGEST - 9),
    "nothing": lambda: "",
    "null bytes": lambda: repeated("\0", 1000),
}


def _aliases(width: int, levels: int) -> str:
    lines = [f"a0: &a0 [{','.join('x' * width)}]"]
    return "\n".join(lines + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)])


YAML: dict[str, Make] = {
    **JSON,
    **_nestings({"flow maps": ("{a: ", "}"), "dashes": ("- ", ""), "questions": ("? ", "")}),
    "indented maps": lambda: "\n".join(f"{' ' * n}a:" for n in range(1_400)),
    "100 kB of indented maps": lambda: "\n".join(f"{' ' * n}a:" for n in range(440)),
    "aliases of aliases": lambda: _aliases(9, 12),
    "one wide list of aliases": lambda: f"a: &a [{repeated('1,', 80_000)}1]\nb: [{repeated('*a,', 200_000)}1]",
    "one long text by alias": lambda: f"a: &a {'x' * 1_000_000}\nb: [{repeated('*a,', 200_000)}1]",
    "an alias of itself": lambda: "a: &a [*a]",
    "deep aliases": lambda: "\n".join(["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 40_000)]),
    "anchors": lambda: "".join(f"- &a{n} 1\n" for n in range(300_000)),
    "tag directives": lambda: "".join(f"%TAG !a{n}! x\n" for n in range(250_000)) + "--- a",
    "tags": lambda: repeated("- !!str 1\n"),
    "a long tag": lambda: "!" + repeated("a", LONGEST - 9) + " x",
    "a long anchor": lambda: "&" + repeated("a", LONGEST - 9) + " x",
    "documents": lambda: repeated("---\n"),
    "documents with a value": lambda: repeated("--- 1\n"),
    "comments": lambda: repeated("#a\n"),
    "folded lines": lambda: "a: >\n" + repeated("  x\n", LONGEST - 9),
    "plain lines": lambda: "a: " + repeated("x\n  ", LONGEST - 9),
    "keys on one line": lambda: repeated("k" * 1000 + ": "),
    "colons": lambda: repeated(": "),
    "commas": lambda: "[" + repeated(",", LONGEST - 9),
    "byte order marks": lambda: repeated("\ufeff"),
    "merge keys": lambda: "a: &a {b: 1}\nc:\n" + "".join(f"  - {{<<: *a, d: {n}}}\n" for n in range(10_000)),
    "a long hexadecimal number": lambda: "a: 0x" + repeated("f", LONGEST - 9),
    "a long octal number": lambda: "a: 0o" + repeated("7", LONGEST - 9),
}

WORDS: dict[str, Make] = {
    **_nestings(
        {
            "parentheses": ("(", ")"),
            "brackets": ("[", "]"),
            "negations": ("not ", ""),
            "upper negations": ("NOT ", ""),
            "minus signs": ("-", ""),
            "filters": ("$[?(@.a == ", ")]"),
            "standard filters": ("$[?@", "]"),
            "exists": ("EXISTS ", ""),
            "calls": ("UPPER(", ")"),
            "lengths": ("$.a[?length(", ")]"),
            "descents": ("$..a[?(", ")]"),
        }
    ),
    "ands": lambda: "a = 1" + repeated(" and a = 1", LONGEST - 9),
    "upper ands": lambda: "a = 1" + repeated(" AND a = 1", LONGEST - 9),
    "sums": lambda: "1" + repeated(" + 1", LONGEST - 9) + " = 1",
    "steps": lambda: "$" + repeated(".a", LONGEST - 9),
    "descending steps": lambda: "$" + repeated("..a", LONGEST - 9),
    "wildcards": lambda: "$" + repeated("[*]", LONGEST - 9),
    "dotted steps": lambda: "a" + repeated(".a", LONGEST - 9),
    "an `in` of numbers": lambda: f"a in ({repeated('1, ', LONGEST - 20)}1)",
    "indexes": lambda: f"$[{repeated('1,', LONGEST - 9)}1]",
    "a long name": lambda: repeated("a"),
    "a long number": lambda: f"a = {repeated('1', LONGEST - 9)}",
    "a long text": lambda: f"a = '{repeated('x', LONGEST - 9)}'",
    "wildcards of LIKE": lambda: f"a LIKE '{repeated('%a', LONGEST - 20)}'",
    "quotes": lambda: repeated("'"),
    "backslashes": lambda: repeated("\\"),
    "a large exponent": lambda: "a = 1e999999999",
    "white space": lambda: repeated(" "),
    "nothing": lambda: "",
    "null bytes": lambda: repeated("\0", 1000),
    "dots": lambda: repeated("."),
    "digits and dots": lambda: repeated("1-1."),
    "colons": lambda: repeated("1:"),
    "dashes": lambda: repeated("-"),
    "semicolons": lambda: repeated(";a"),
    "percent signs": lambda: repeated("%25"),
}

EXPRESSIONS: dict[str, Make] = {
    "groups": lambda: nested("(", "a", ")", 30_000),
    "repeats": lambda: nested("(", "a", "+)+", 30),
    "large repeats": lambda: "((a{1000}){1000}){1000}",
    "large repeats that backtrack": lambda: "(?=a)((a{1000}){1000,}){1000,1001}",
    "choices": lambda: "|".join(f"a{n}" for n in range(10_000)),
    "classes": lambda: repeated(r"\pL\d\w[^\x00]", 60_000),
}
"""Regular expressions, as filters and schemas hold them."""

SCHEMAS: dict[str, Make] = {
    **{f"pattern: {name}": lambda make=make: json.dumps({"pattern": make()}) for name, make in EXPRESSIONS.items()},  # type: ignore[misc]
    **{
        f"{depth} levels": lambda depth=depth: nested('{"items":', "{}", "}", depth)  # type: ignore[misc]
        for depth in (100, 127)
    },
    "references in a circle": lambda: (
        '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}'
    ),
    "doubling references": lambda: json.dumps(
        {
            "$ref": "#/$defs/a30",
            "$defs": {"a0": {"type": "object"}}
            | {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, 31)},
        }
    ),
    "references": lambda: json.dumps(
        {"$defs": {str(n): {} for n in range(9_000)}, "allOf": [{"$ref": f"#/$defs/{n}"} for n in range(9_000)]}
    ),
    "patterns": lambda: json.dumps({"allOf": [{"pattern": rf"\pL{{20}}{n}"} for n in range(5_000)]}),
    "many faults": lambda: json.dumps({"items": {"allOf": [{"type": "string"}] * 5_000}}),
    "many faults to choose from": lambda: json.dumps({"items": {"anyOf": [{"type": "string"}] * 5_000}}),
    "choices": lambda: json.dumps({"anyOf": [{"type": "object", "required": [str(n)]} for n in range(50_000)]}),
    "enumerated": lambda: json.dumps({"enum": list(range(90_000))}),
    "properties": lambda: json.dumps({"properties": {str(n): {"type": "string"} for n in range(40_000)}}),
    "foreign": lambda: '{"$ref": "https://schema.example/a.json"}',
    "file": lambda: '{"$ref": "file:///etc/passwd"}',
    "not a schema": lambda: '{"type": 7}',
}


def _records(levels: int, width: int) -> list[dict[str, object]]:
    """Records of the record before, each so many times."""
    made: list[dict[str, object]] = [{"type": "record", "name": "T0", "fields": []}]
    for n in range(levels):
        fields = [{"name": f"f{k}", "type": f"T{n}"} for k in range(width)]
        made.append({"type": "record", "name": f"T{n + 1}", "fields": fields})
    return made


def _holding(types: list[dict[str, object]]) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": one} for n, one in enumerate(types)]}
    )


def _defaults(levels: int) -> str:
    """Records whose defaults double with each level."""
    types = [{"type": "record", "name": "T0", "fields": [{"name": "a", "type": "long", "default": 1}]}]
    for n in range(levels):
        fields = [{"name": name, "type": f"T{n}", "default": {}} for name in "ab"]
        types.append({"type": "record", "name": f"T{n + 1}", "fields": fields})
    return _holding(types)  # type: ignore[arg-type]


AVRO: dict[str, Make] = {
    "doubling records": lambda: _holding(_records(60, 2)),
    "wide records of records": lambda: _holding(_records(5, 100)),
    "a long chain of records": lambda: _holding(_records(900, 1)),
    "doubling defaults": lambda: _defaults(40),
    "doubling defaults of few values": lambda: _defaults(12),
    "defaults of defaults": lambda: json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["R", "null"], "default": {}}]}
    ),
    "arrays in arrays": lambda: nested('{"type":"array","items":', '"null"', "}", 60),
    "unions in records in unions": lambda: nested('["null",{"type":"map","values":', '"int"', "}]", 20),
    "records that hold one another": lambda: json.dumps(
        {
            "type": "record",
            "name": "A",
            "fields": [
                {
                    "name": "b",
                    "type": [
                        "null",
                        {
                            "type": "record",
                            "name": "B",
                            "fields": [{"name": "a", "type": ["null", "A", "B"]}, {"name": "x", "type": "int"}],
                        },
                    ],
                },
                {"name": "c", "type": ["null", "A", "B"]},
            ],
        }
    ),
    "a record in itself": lambda: '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}',
    "many fields": lambda: _holding([{"type": "fixed", "name": f"F{n}", "size": 0} for n in range(4_000)]),
    "null fields in an array": lambda: json.dumps(
        {
            "type": "array",
            "items": {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "null"} for n in range(4_000)]},
        }
    ),
    "many symbols": lambda: json.dumps({"type": "enum", "name": "E", "symbols": [f"s{n}" for n in range(30_000)]}),
    "a large fixed": lambda: '{"type":"fixed","name":"F","size":9223372036854775807}',
    "a long name": lambda: json.dumps({"type": "record", "name": "a" * 200_000, "fields": []}),
    "a long namespace": lambda: json.dumps({"type": "record", "name": "R", "namespace": "a." * 100_000 + "b", "fields": []}),
    "a union of everything": lambda: json.dumps(
        ["null", "int", "long", "float", "double", "bytes", "string", "boolean"] * 1_000
    ),
}
"""Avro schemas."""
