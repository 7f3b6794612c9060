"""Collections of cases kept outside the repository; skipped where they are absent."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentgram.engine import Ebnf, JsonSchema, Regex
from agentgram.errors import GrammarError
from tests.engine.schemas import compiled, engine, takes

DATA = Path(__file__).parents[3] / "shared" / "data"


def lines(name: str) -> list[str]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as file:
            return file.readlines()
    return path.read_text().splitlines()


def test_small_cases() -> None:
    wrong = []
    for row in map(json.loads, lines("cases-dev.jsonl")):
        if row["kind"] == "perf":
            continue
        options = row.get("options") or {}
        make = {"regex": Regex, "ebnf": Ebnf}.get(row["kind"])
        order = options.get("property_order", "declared")
        try:
            spec = make(row["input"]) if make else JsonSchema(json.dumps(row["input"]), property_order=order)
            grammar = engine().compile(spec)
        except GrammarError as error:
            if not (options.get("expect") == "error" or options.get("allow_error")):
                wrong.append((row["id"], str(error)))
            continue
        if options.get("expect") == "error":
            wrong.append((row["id"], "not refused"))
        wrong += [(row["id"], text) for text in row.get("accept", []) if not takes(grammar, text)]
        wrong += [(row["id"], text) for text in row.get("reject", []) if takes(grammar, text)]
    assert wrong == []


def sample(name: str, size: int) -> list[dict[str, Any]]:
    rows = lines(name)
    return [json.loads(row) for row in random.Random(7).sample(rows, min(size, len(rows)))]


def test_documents_of_real_schemas() -> None:
    """Valid documents are taken, invalid ones are not; few schemas are refused, and by name."""
    refused, wrong = [], []
    rows = sample("maskbench-dev.jsonl.gz", 300)
    for row in rows:
        try:
            grammar = compiled(row["schema"], property_order="any")
        except GrammarError:
            refused.append(row["id"])
            continue
        texts = [(json.dumps(test["data"], ensure_ascii=False), test["valid"]) for test in row["tests"]]
        wrong += [(row["id"], text) for text, valid in texts if takes(grammar, text) != valid]
    assert wrong == []
    assert len(refused) <= len(rows) * 0.03


def test_shortest_documents_of_real_schemas_are_valid() -> None:
    for row in sample("maskbench-dev.jsonl.gz", 150):
        try:
            grammar = compiled(row["schema"])
        except GrammarError:
            continue
        text = grammar.matcher().shortest_end()
        kind = jsonschema.validators.validator_for(row["schema"], default=jsonschema.Draft202012Validator)
        assert kind(row["schema"]).is_valid(json.loads(text)), (row["id"], text)


def test_the_test_suite_of_json_schema_has_no_false_positive() -> None:
    """Every instance that is taken is valid; what is refused is refused by name."""
    wrong = []
    for row in sample("json-schema-suite-dev.jsonl.gz", 400):
        text = json.dumps(row["schema"])
        if "localhost" in text or "format" in row["file"]:
            continue  # what each format asserts is the regular layer's to test
        try:
            grammar = compiled(text, property_order="any")
        except GrammarError:
            continue
        if takes(grammar, json.dumps(row["data"], ensure_ascii=False)) and not row["valid"]:
            wrong.append((row["file"], row["group"], row["test"]))
    assert wrong == []
