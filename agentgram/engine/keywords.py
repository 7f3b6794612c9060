"""What becomes of every keyword of JSON Schema, found out by compiling a small schema with it.

``agentgram check --keywords`` and ``docs/json-schema.md`` show these tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentgram.engine.core import CoverageReport, Engine, EngineOptions
from agentgram.engine.spec import JsonSchema
from agentgram.engine.vocabulary import Vocabulary
from agentgram.errors import GrammarError

State: TypeAlias = Literal["enforced", "narrowed", "read", "describes"]


@dataclass(frozen=True, kw_only=True)
class KeywordRow:
    """What the compiler does with one keyword, or with one format."""

    keyword: str
    """The keyword, or ``format: NAME``."""
    since: str
    """The first draft that has it, of those that are supported; with the last one where it was dropped."""
    state: State
    """``enforced``: exactly. ``narrowed``: not everything valid is written. ``read``: it names or holds schemas."""
    narrowed: str
    """What is valid and not written; empty when nothing is."""
    refused: str
    """The case that is refused by name, as the error says it; empty when there is none."""


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """A schema that shows a keyword at work, and one with it that is refused."""

    since: str
    schema: Any
    refused: Any = None


_DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
_DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
_MANY = {letter: {"minLength": i} for i, letter in enumerate("abcdefghij")}
_HALF = '{"%s": %s}'  # JSON text: half a surrogate pair, which no Python encoder writes as UTF-8

_KEYWORDS: dict[str, _Probe] = {
    "type": _Probe(since="4", schema={"type": ["string", "null"]}),
    "enum": _Probe(since="4", schema={"enum": [1.5, "a", [1]]}, refused=_HALF % ("enum", r'["\ud800"]')),
    "const": _Probe(since="6", schema={"const": {"a": 1}}, refused=_HALF % ("const", r'"\ud800"')),
    "properties": _Probe(since="4", schema={"properties": {"a": {"type": "integer"}}}),
    "required": _Probe(since="4", schema={"required": ["a"]}),
    "additionalProperties": _Probe(since="4", schema={"additionalProperties": {"type": "integer"}}),
    "patternProperties": _Probe(
        since="4", schema={"patternProperties": {"^a": {"const": 1}}}, refused={"patternProperties": _MANY}
    ),
    "propertyNames": _Probe(since="6", schema={"propertyNames": {"maxLength": 3}}),
    "minProperties": _Probe(since="4", schema={"minProperties": 1}),
    "maxProperties": _Probe(since="4", schema={"maxProperties": 1}),
    "dependentRequired": _Probe(since="2019-09", schema={"dependentRequired": {"a": ["b"]}}),
    "dependentSchemas": _Probe(since="2019-09", schema={"dependentSchemas": {"a": {"required": ["b"]}}}),
    "dependencies": _Probe(since="4 to 7", schema={**_DRAFT_7, "dependencies": {"a": ["b"]}}),
    "unevaluatedProperties": _Probe(since="2019-09", schema={"properties": {"a": {}}, "unevaluatedProperties": False}),
    "items": _Probe(since="4", schema={"items": {"type": "integer"}}),
    "prefixItems": _Probe(since="2020-12", schema={"prefixItems": [{"type": "integer"}]}),
    "additionalItems": _Probe(since="4 to 2019-09", schema={**_DRAFT_7, "items": [{}], "additionalItems": False}),
    "contains": _Probe(
        since="6", schema={"contains": {"const": 1}}, refused={"contains": {"uniqueItems": True}, "maxContains": 1}
    ),
    "minContains": _Probe(since="2019-09", schema={"contains": {"const": 1}, "minContains": 2}),
    "maxContains": _Probe(since="2019-09", schema={"contains": {"const": 1}, "maxContains": 2}),
    "minItems": _Probe(since="4", schema={"minItems": 1}),
    "maxItems": _Probe(since="4", schema={"maxItems": 1}),
    "uniqueItems": _Probe(
        since="4",
        schema={"items": {"type": "string"}, "uniqueItems": True},
        refused={"items": {"type": ["object", "array"]}, "uniqueItems": True},
    ),
    "unevaluatedItems": _Probe(since="2019-09", schema={"prefixItems": [{}], "unevaluatedItems": False}),
    "minLength": _Probe(since="4", schema={"minLength": 1}),
    "maxLength": _Probe(since="4", schema={"maxLength": 1}),
    "pattern": _Probe(since="4", schema={"pattern": "^a+$"}, refused={"pattern": "a(?=b)"}),
    "format": _Probe(since="4", schema={"format": "date"}),
    "contentEncoding": _Probe(since="7", schema={**_DRAFT_7, "contentEncoding": "base64"}),
    "contentMediaType": _Probe(
        since="7",
        schema={**_DRAFT_7, "contentMediaType": "application/json"},
        refused={**_DRAFT_7, "contentMediaType": "application/json", "contentEncoding": "base64"},
    ),
    "contentSchema": _Probe(since="2019-09", schema={"contentSchema": {}}),
    "minimum": _Probe(since="4", schema={"minimum": 0.1}),
    "maximum": _Probe(since="4", schema={"maximum": 0.1}),
    "exclusiveMinimum": _Probe(since="4", schema={"exclusiveMinimum": 0.1}),
    "exclusiveMaximum": _Probe(since="4", schema={"exclusiveMaximum": 0.1}),
    "multipleOf": _Probe(since="4", schema={"multipleOf": 0.1}),
    "allOf": _Probe(since="4", schema={"allOf": [{"minLength": 1}]}),
    "anyOf": _Probe(since="4", schema={"anyOf": [{"minLength": 1}, {"type": "null"}]}),
    "oneOf": _Probe(
        since="4",
        schema={"oneOf": [{"minimum": 1}, {"multipleOf": 2}]},
        refused={"oneOf": [{"uniqueItems": True}, {"minItems": 2}]},
    ),
    "not": _Probe(since="4", schema={"not": {"type": "string"}}, refused={"not": {"uniqueItems": True}}),
    "if": _Probe(since="7", schema={"if": {"type": "string"}, "then": {"minLength": 1}}),
    "then": _Probe(since="7", schema={"if": {"type": "string"}, "then": {"minLength": 1}}),
    "else": _Probe(since="7", schema={"if": {"type": "string"}, "else": {"minimum": 1}}),
    "$ref": _Probe(
        since="4",
        schema={"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        refused={"$ref": "https://example.com/schema"},
    ),
    "$dynamicRef": _Probe(since="2020-12", schema={"$dynamicRef": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
    "$recursiveRef": _Probe(
        since="2019-09",
        schema={**_DRAFT_2019, "properties": {"a": {"$recursiveRef": "#"}}},
        refused={**_DRAFT_2019, "$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}}},
    ),
    "$id": _Probe(
        since="4 (as id)", schema={"$ref": "https://example.com/a", "$defs": {"x": {"$id": "https://example.com/a"}}}
    ),
    "$anchor": _Probe(since="2019-09", schema={"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}}),
    "$dynamicAnchor": _Probe(since="2020-12", schema={"$dynamicAnchor": "a"}),
    "$recursiveAnchor": _Probe(since="2019-09", schema={**_DRAFT_2019, "$recursiveAnchor": True}),
    "$defs": _Probe(since="2019-09 (definitions before)", schema={"$defs": {}}),
    "$schema": _Probe(since="4", schema=_DRAFT_7),
    "$vocabulary": _Probe(since="2019-09", schema={"$vocabulary": {}}),
    "$comment": _Probe(since="7", schema={"$comment": "x"}),
    "title": _Probe(since="4", schema={"title": "x"}),
    "description": _Probe(since="4", schema={"description": "x"}),
    "default": _Probe(since="4", schema={"default": 1}),
    "examples": _Probe(since="6", schema={"examples": [1]}),
    "deprecated": _Probe(since="2019-09", schema={"deprecated": True}),
    "readOnly": _Probe(since="7", schema={"readOnly": True}),
    "writeOnly": _Probe(since="7", schema={"writeOnly": True}),
}
_READ = {"$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "$schema"}

_FORMATS: dict[str, str] = {
    "date-time": "4", "date": "7", "time": "7", "duration": "2019-09", "email": "4", "idn-email": "7", "hostname": "4",
    "idn-hostname": "7", "ipv4": "4", "ipv6": "4", "uri": "4", "uri-reference": "6", "iri": "7", "iri-reference": "7",
    "uri-template": "6", "uuid": "2019-09", "json-pointer": "6", "relative-json-pointer": "7", "regex": "7",
}  # fmt: skip


def keyword_rows() -> Iterator[KeywordRow]:
    """A row for every keyword of the drafts 4 to 2020-12."""
    engine = _engine()
    for word, probe in _KEYWORDS.items():
        yield _row(engine, word, word, probe)


def format_rows() -> Iterator[KeywordRow]:
    """A row for every value of ``format`` that is held to. Others only describe, with a warning in the report."""
    engine = _engine()
    for name, since in _FORMATS.items():
        yield _row(engine, "format", f"format: {name}", _Probe(since=since, schema={"format": name}))


def as_markdown() -> str:
    """Both tables, as ``docs/json-schema.md`` has them."""
    return _table("Keyword", keyword_rows()) + "\n" + _table("Format", format_rows())


def _engine() -> Engine:
    return Engine(Vocabulary.byte_level(), EngineOptions(threads=1))


def _row(engine: Engine, word: str, name: str, probe: _Probe) -> KeywordRow:
    report = engine.compile(JsonSchema(probe.schema)).report
    narrowed = "; ".join(row.why for row in report.narrowed if row.keyword == word)
    return KeywordRow(
        keyword=name,
        since=probe.since,
        state=_state(report, word),
        narrowed=narrowed,
        refused=_refusal(engine, probe.refused) if probe.refused is not None else "",
    )


def _state(report: CoverageReport, word: str) -> State:
    if any(row.keyword == word for row in report.narrowed):
        return "narrowed"
    if any(row.keyword == word for row in report.enforced):
        return "enforced"
    return "read" if word in _READ else "describes"


def _refusal(engine: Engine, schema: Mapping[str, Any] | str) -> str:
    try:
        engine.compile(JsonSchema(schema))
    except GrammarError as error:
        return str(error).removesuffix(f". {error.hint}").removesuffix(f" at {error.pointer or '/'}")
    raise AssertionError(f"{json.dumps(schema)} is said to be refused, and is not")


def _table(title: str, rows: Iterator[KeywordRow]) -> str:
    lines = [f"| {title} | Since draft | | Valid, and not written | Refused by name |", "|---|---|---|---|---|"]
    for row in rows:
        name = row.keyword.removeprefix("format: ")
        lines.append(f"| `{name}` | {row.since} | {row.state} | {_cell(row.narrowed)} | {_cell(row.refused)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
