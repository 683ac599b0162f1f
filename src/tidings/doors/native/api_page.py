"""The API page: the OpenAPI document as one plain HTML page. No script, nothing from elsewhere: it works without internet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import msgspec

Document = Mapping[str, Any]

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid #d5dae0;text-transform:capitalize}
details{border:1px solid #d5dae0;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}summary{cursor:pointer}
code,pre{font:13px/1.45 ui-monospace,monospace;background:#f3f5f7;border-radius:4px}code{padding:.1rem .3rem}
pre{padding:.6rem;overflow:auto}b{display:inline-block;min-width:4.2rem;font:600 13px ui-monospace,monospace}
.get{color:#0b6}.put{color:#a60}.post{color:#06c}.delete{color:#c22}.why{color:#57606a}
table{border-collapse:collapse}td{padding:.15rem .8rem .15rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#16191d;color:#dfe3e8}code,pre{background:#22272e}details,h2{border-color:#3a4149}}
"""

_DEPTH = 4


def page(document: Document) -> str:
    """The page for an OpenAPI document."""
    info = document["info"]
    body = "".join(_sections(document))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info.get('description', ''))}</p>"
        f"<p class=why>The same for programs: <a href='openapi.json'>openapi.json</a></p>{body}"
    )


def _sections(document: Document) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(document, path, method, operation))
    for tag, listed in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(listed)}"


def _operation(document: Document, path: str, method: str, operation: Document) -> str:
    says = operation.get("description", "")
    parts = [f"<p>{escape(says)}</p>", _parameters(operation), _body(document, operation), _answers(document, operation)]
    return (
        f"<details><summary><b class={method}>{method.upper()}</b><code>{escape(path)}</code>"
        f" <span class=why>{escape(says.split('. ')[0].rstrip('.'))}</span></summary>{''.join(parts)}</details>"
    )


def _parameters(operation: Document) -> str:
    rows = [
        f"<tr><td><code>{escape(one['name'])}</code><td>{escape(one['in'])}"
        f"<td>{escape(one.get('description') or one.get('schema', {}).get('description', ''))}{_default(one)}"
        for one in operation.get("parameters", ())
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _default(parameter: Document) -> str:
    schema = parameter.get("schema", {})
    return f" <span class=why>(default {escape(str(schema['default']))})</span>" if "default" in schema else ""


def _body(document: Document, operation: Document) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return "".join(f"<p>Body <code>{escape(kind)}</code></p>{_shape(document, one)}" for kind, one in content.items())


def _answers(document: Document, operation: Document) -> str:
    shown = []
    for status, answer in operation.get("responses", {}).items():
        shapes = "".join(_shape(document, one) for one in answer.get("content", {}).values())
        shown.append(f"<p>Answer <code>{escape(status)}</code> {escape(answer.get('description', ''))}</p>{shapes}")
    return "".join(shown)


def _shape(document: Document, content: Document) -> str:
    """An example where there is one, else what the schema looks like."""
    example = content.get("example")
    if example is None:
        schema = content.get("schema")
        if not schema:
            return ""
        example = _like(document, schema, _DEPTH)
    text = example if isinstance(example, str) else msgspec.json.format(msgspec.json.encode(example), indent=2).decode()
    return f"<pre>{escape(text)}</pre>"


def _like(document: Document, schema: Document, depth: int) -> Any:
    """A value that shows the shape of a schema."""
    schema = _followed(document, schema)
    if depth == 0:
        return "…"
    if "properties" in schema:
        return {name: _like(document, one, depth - 1) for name, one in schema["properties"].items()}
    match schema.get("type"):
        case "array":
            return [_like(document, schema.get("items", {}), depth - 1)]
        case "object":
            return {"…": "…"}
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return schema.get("description") or schema.get("const") or schema.get("type", "…")


def _followed(document: Document, schema: Document) -> Document:
    """The schema itself: references are looked up, and of several choices the first that is not null is shown."""
    while True:
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema:
            said = {"description": schema["description"]} if "description" in schema else {}
            schema = {**next((one for one in schema["anyOf"] if one.get("type") != "null"), {}), **said}
        else:
            return schema
