"""Tools, values and texts, the nasty ones among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agentgram.messages import ToolCall
from agentgram.tools.definition import ToolDefinition

FRAGMENTS = [
    "</tool_call>",
    "<tool_call>",
    '<tool_call>\n{"name": "',
    '"}\n</tool_call>',
    "<|im_end|>",
    "<|im_start|>user\n",
    "<tools>",
    "</tools>",
    "<think>",
    "</think>",
    "<tool_response>",
    "{{",
    '"',
    "\\",
    "\\u0041",
    "'",
    "\n",
    "\n\n",
    " ",
    "é",
    "東京",
    "😀",
    "\u2028",
    "\x00",
    "\n</parameter>\n",
    "</parameter>",
    "</function>\n</tool_call>",
    "<parameter=a>\n",
    "<function=get>",
    "</function>",
    "<|eot_id|>",
    "<|eot|>",
    "<|python_tag|>",
    "[get(",
    ")]",
    '{"name": "get"',
    "<|start|>assistant",
    "<|channel|>final<|message|>",
    "<|end|>",
    "<|call|>",
    " to=functions.get",
    "[TOOL_CALLS]",
    "[ARGS]",
    "</s>",
    '<|"|>',
    "<tool_call|>",
    "<|tool_call_end|>",
    "True",
    "null",
    "17",
    "[1]",
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=6).map("".join)
NAMES = st.sampled_from(
    ["f", "get", "get_weather", "get_weather_v2", "crm.find-it", "wipe", "wipe_cache", "a.b.c", "0x"]
)
KEYS = st.sampled_from(["a", "b", "name", "arguments", "city name", "é", 'quo"te', "x" * 40])

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 5},
        {"type": "integer"},
        {"type": "integer", "minimum": -5, "maximum": 250},
        {"type": "number"},
        {"type": "boolean"},
        {"enum": ["red", 'gr"een', "bl</tool_call>ue"]},
        {"const": 7},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    ]
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(KEYS, inner, max_size=3))
        required = [k for k in properties if draw(st.booleans())]
        out: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            out["required"] = required
        if draw(st.booleans()):
            out["additionalProperties"] = False
        return out

    return build()


SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: (
        _objects(inner)
        | inner.map(lambda s: {"type": "array", "items": s, "maxItems": 4})
        | st.lists(inner, min_size=1, max_size=2).map(lambda s: {"type": "array", "prefixItems": s, "items": False})
    ),
    max_leaves=4,
)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that satisfy a schema of :data:`SCHEMAS`, with keys in declared order."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    kind = schema["type"]
    if kind == "string":
        return st.text(max_size=5) if "maxLength" in schema else TEXTS
    if kind == "integer":
        return st.integers(schema.get("minimum"), schema.get("maximum"))
    if kind == "number":
        return FLOATS | st.integers()
    if kind == "null":
        return st.none()
    if kind == "boolean":
        return st.booleans()
    if kind == "array" and "prefixItems" in schema:
        return st.tuples(*map(values, schema["prefixItems"])).map(list)
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=4)
    return _object_values(schema)


@st.composite
def _object_values(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    out = {}
    for key, inner in schema["properties"].items():
        if key in schema.get("required", ()) or draw(st.booleans()):
            out[key] = draw(values(inner))
    if schema.get("additionalProperties", True) and draw(st.integers(0, 3)) == 0:
        out["zz extra"] = draw(TEXTS)
    return out


@st.composite
def tools(draw: st.DrawFn, min_size: int = 1, max_size: int = 3) -> list[ToolDefinition]:
    """Tools with different names."""
    names = draw(st.lists(NAMES, min_size=min_size, max_size=max_size, unique=True))
    return [ToolDefinition(name=n, description=draw(TEXTS), schema=draw(_objects(SCHEMAS))) for n in names]


@st.composite
def calls(
    draw: st.DrawFn, definitions: list[ToolDefinition], min_size: int = 0, *, extras: bool = True
) -> list[ToolCall]:
    """Calls of some of the tools; ``extras``: with arguments that a schema does not speak of, where it allows them."""
    chosen = draw(st.lists(st.sampled_from(definitions), min_size=min_size, max_size=3))
    made = [ToolCall(name=d.name, arguments=draw(values(dict(d.schema)))) for d in chosen]
    return made if extras else [ToolCall(name=c.name, arguments=_without_extras(c.arguments)) for c in made]


def _without_extras(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_extras(v) for k, v in value.items() if k != "zz extra"}
    return [_without_extras(v) for v in value] if isinstance(value, list) else value


PIECES = [
    *FRAGMENTS,
    '{"name": "get", "arguments": {}}',
    '{"name": "get", "parameters": {"a": 1}}',
    "{'arguments': {'a': True}, 'name': 'get'}",
    '{"name": "nobody", "arguments": {}}',
    '{"name": "get", "name": "get", "arguments": {"a": 1, "a": 2}}',
    '{"arguments": {"a": "',
    '"name": "get"',
    ", ",
    "[",
    "]}",
    "<tool_call>\n",
    "\n</tool_call>",
    "<tool_call>\n<function=get>\n",
    "<parameter=a>\n1\n</parameter>\n",
    "<function=get>{}</function>",
    "[get(a=1), nobody(b='x')]",
    "[get(",
    "a='",
    "<|python_start|>",
    "<|python_end|>",
    "<|channel|>commentary to=functions.get <|constrain|>json<|message|>{}<|call|>",
    "<|channel|>analysis<|message|>",
    "<|message|>{}",
    "<|return|>",
    "[TOOL_CALLS]get[CALL_ID]abcdef120[ARGS]{}",
    "<|tool_call>call:get{a:1}<tool_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "prose",
]
OUTPUTS = st.lists(
    st.sampled_from(PIECES).map(str.encode) | st.binary(max_size=3) | st.text(max_size=3).map(str.encode), max_size=8
).map(b"".join)
"""What a model without a grammar may write, whole calls and broken ones among it."""


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The data in pieces."""
    at = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]
