"""Which schemas of a collection the engine refuses, and why: grouped and counted, as docs/json-schema.md shows it.

    python benchmarks/refusals.py maskbench.jsonl.gz --page docs/json-schema.md

The collection has a JSON object on each line, gzipped: "id", "schema", and "tests", a list of {"data", "valid"}; the
schemas of MaskBench (https://github.com/guidance-ai/jsonschemabench) have this form. Every document is checked too.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from tables import markdown, rewrite

from agentgram.engine import Engine, EngineOptions, Grammar, GrammarError, JsonSchema, Vocabulary


@dataclass(kw_only=True)
class Tally:
    """What came of the schemas and their documents."""

    schemas: int = 0
    documents: int = 0
    wrong: list[str] = field(default_factory=list)
    """Schemas with an invalid document that was taken, or a valid one that was not."""
    refused: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))
    """By reason: the schemas' ids."""


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def reason(error: GrammarError) -> str:
    """The error without what is this schema's own: quoted texts, places and numbers."""
    text = str(error).removesuffix(f". {error.hint}").removesuffix(f" at {error.pointer or '/'}")
    text = re.sub(r" \(at character .*", "", text, flags=re.DOTALL)
    text = re.sub(r"the pattern '.*'", "the pattern", text, flags=re.DOTALL)
    text = re.sub(r" at position \d+", "", text)
    return re.sub(r'^".*" leads', "a reference leads", text, flags=re.DOTALL)


def takes(grammar: Grammar, document: Any) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(json.dumps(document, ensure_ascii=False).encode()) and matcher.can_end


def count(path: Path) -> Tally:
    tally = Tally()
    vocabulary = Vocabulary.byte_level()
    for row in rows(path):
        tally.schemas += 1
        engine = Engine(vocabulary, EngineOptions(threads=1))  # each schema alone, so that memory stays small
        try:
            grammar = engine.compile(JsonSchema(json.dumps(row["schema"]), property_order="any"))
        except GrammarError as error:
            tally.refused[reason(error)].append(row["id"])
            continue
        tally.documents += len(row["tests"])
        if any(takes(grammar, test["data"]) != test["valid"] for test in row["tests"]):
            tally.wrong.append(row["id"])
    return tally


def report(tally: Tally) -> str:
    refused = sum(map(len, tally.refused.values()))
    text = (
        f"Of {tally.schemas:,} schemas {refused} are refused ({refused / tally.schemas:.1%}). With the others, "
        f"{tally.documents:,} documents were tried. Schemas that took an invalid one or refused a valid one: "
        f"{len(tally.wrong)}.\n\n"
    )
    groups = sorted(tally.refused.items(), key=lambda group: (-len(group[1]), group[0]))
    return text + markdown(["Schemas", "Refused because"], [[len(ids), why] for why, ids in groups])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--page", type=Path, help="a page with the marks refusals:begin and refusals:end to write it into"
    )
    options = parser.parse_args()
    text = report(count(options.data))
    if options.page is not None:
        rewrite(options.page, "refusals", text)
    print(text, end="")


if __name__ == "__main__":
    main()
