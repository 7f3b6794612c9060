"""Tools as TypeScript declarations, as Harmony's prompts have them (openai-harmony's renderer is the reference).

One thing is said better than there: the alternatives of ``anyOf`` are listed, where the reference writes ``any``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from agentgram.formats.guarding import breaker
from agentgram.formats.schemas import resolved
from agentgram.tools.definition import ToolDefinition

_NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_DEEP = 16


def namespace(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    """All tools in the namespace ``functions``."""
    return _namespace("functions", [(t.name, t) for t in tools], avoid)


def builtins(tools: Sequence[ToolDefinition], avoid: tuple[str, ...]) -> str:
    """Tools with a way of their own, each group under its heading: a namespace for those with a dot in their name."""
    out = []
    for group, members in groupby(tools, key=lambda t: t.name.partition(".")[0]):
        same = list(members)
        if len(same) == 1 and "." not in same[0].name:
            out.append(f"## {group}\n\n{breaker(avoid)(same[0].description)}")
        else:
            listed = _namespace(group, [(t.name.partition(".")[2] or t.name, t) for t in same], avoid)
            out.append(f"## {group}\n\n{listed}")
    return "\n\n".join(out)


def _namespace(name: str, tools: Sequence[tuple[str, ToolDefinition]], avoid: tuple[str, ...]) -> str:
    types = "".join(_comment(t.description, "") + _type(short, t) + "\n\n" for short, t in tools)
    return breaker(avoid)(f"namespace {name} {{\n\n{types}}} // namespace {name}")


def _type(name: str, tool: ToolDefinition) -> str:
    root = resolved(tool.schema, tool.schema)
    if not root.get("properties"):
        return f"type {name} = () => any;"
    return f"type {name} = (_: {{\n{_properties(root, root, '')}}}) => any;"


def _comment(text: str, indent: str) -> str:
    return "".join(f"{indent}// {line}".rstrip() + "\n" for line in text.split("\n")) if text else ""


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any], indent: str) -> str:
    required = schema.get("required", ())
    out = []
    for key, described in schema.get("properties", {}).items():
        said = described if isinstance(described, Mapping) else {}
        here = resolved(described, root)
        title = f"{_comment(str(said['title']), indent)}{indent}//\n" if "title" in said else ""
        out.append(title + _comment(str(said.get("description", here.get("description", ""))), indent))
        default = f", // default: {_default(said['default'], here)}" if "default" in said else ","
        mark = "" if key in required else "?"
        out.append(f"{indent}{key}{mark}: {_typed(here, root, indent)}{default}\n")
    return "".join(out)


def _default(value: Any, schema: Mapping[str, Any]) -> str:
    return value if isinstance(value, str) and "enum" in schema else json.dumps(value, ensure_ascii=False)


def _typed(schema: Any, root: Mapping[str, Any], indent: str) -> str:
    here = resolved(schema, root)
    if len(indent) > 4 * _DEEP:
        return "any"
    nullable = " | null" if here.get("nullable") is True else ""
    for keyword in ("anyOf", "oneOf"):
        if keyword in here:
            return " | ".join(dict.fromkeys(_typed(option, root, indent) for option in here[keyword])) + nullable
    kind = here.get("type")
    if isinstance(kind, list):
        return " | ".join(k if k == "null" else _typed({**here, "type": k}, root, indent) for k in kind)
    if kind == "null" and not nullable:
        return "null"
    if kind == "string" and here.get("enum"):
        return " | ".join(json.dumps(v, ensure_ascii=False) for v in here["enum"]) + nullable
    if kind == "array":
        items = here.get("items")
        return (f"{_typed(items, root, indent)}[]" if isinstance(items, Mapping) else "Array<any>") + nullable
    if kind == "object":
        inner = indent + "    "
        return f"{{\n{_properties(here, root, inner)}{inner}}}{nullable}"
    return _NAMES.get(str(kind), "any") + nullable
