"""Outputs that broke other parsers, each read in every way of cutting it into up to three pieces."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from agentgram.formats import Request
from agentgram.tools.definition import ToolDefinition
from tests.laws.shapes import NAMES, format_of

SHARED = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the collected outputs are not beside this checkout")

BESIDE: dict[str, dict[str, Any]] = {
    "Q5": {"text": "Use a <tool_call> tag to wrap it. Then continue."},
    "Q7": {"text": "Let me grep."},
    "L2": {"text": " I used {lookup} for this."},
    "O4": {"calls": [["lookup", {"id": "7"}]]},
    "O5": {"reasoning": "hmm", "malformed": ["<|channel|>commentary?commentary?"]},
    "O7": {"calls": [["lookup", {"id": "7"}]]},
}
"""What each output is beside its calls, as we see it; where a row expects no calls of its own, those too."""


def rows() -> list[Any]:
    if not SHARED.is_dir():
        return []
    every = map(json.loads, (SHARED / "outputs-dev.jsonl").read_text("utf-8").splitlines())
    return [pytest.param(row, id=row["id"]) for row in every if row["format"] in NAMES]


def request() -> Request:
    functions = [t["function"] for t in json.loads((SHARED / "outputs-tools.json").read_text("utf-8"))]
    return Request(tools=[ToolDefinition(name=f["name"], schema=f["parameters"]) for f in functions])


@pytest.mark.parametrize("row", rows())
def test_every_split_gives_what_was_meant(row: dict[str, Any]) -> None:
    fmt, asked, raw = format_of(row["format"]), request(), row["raw"].encode()
    beside = BESIDE.get(row["id"], {})
    expected = beside.get("calls", row["expect"])
    cuts = range(len(raw) + 1)
    wide = cuts if len(raw) <= 150 else range(0, len(raw) + 1, 7)
    for i, j in [*((i, i) for i in cuts), *combinations_with_replacement(wide, 2)]:
        parser = fmt.parser(asked)
        for piece in (raw[:i], raw[i:j], raw[j:]):
            parser.feed_bytes(piece)
        message = parser.close()
        assert [[c.name, c.arguments] for c in message.calls] == expected
        assert message.text == beside.get("text", "")
        assert message.reasoning == beside.get("reasoning", "")
        assert [m.raw for m in message.malformed] == beside.get("malformed", [])
