"""The tables of keywords and formats: complete, and true."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema_specifications import REGISTRY

from agentgram.engine.keywords import KeywordRow, format_rows, keyword_rows
from tests.engine.schemas import check, compiled

ROWS = {row.keyword: row for row in keyword_rows()}
OLD_NAMES = {"id": "$id", "definitions": "$defs"}


def words_of_all_drafts() -> set[str]:
    """What the meta-schemas of the supported drafts describe."""
    words: set[str] = set()
    for uri in REGISTRY:
        if "draft-03" not in uri:
            words |= set(REGISTRY.contents(uri).get("properties", {}))
    return words


def test_no_keyword_is_missing() -> None:
    words = words_of_all_drafts()
    assert {"type", "if", "$recursiveRef", "prefixItems", "definitions"} <= words
    assert {OLD_NAMES.get(word, word) for word in words} - set(ROWS) == set()


def test_what_describes_rules_nothing_out() -> None:
    describing = [word for word, row in ROWS.items() if row.state == "describes"]
    assert {"title", "default", "contentSchema"} <= set(describing)
    check(dict.fromkeys(describing, 1), ["1", '"a"', "null", "[{}]"], [])


@pytest.mark.parametrize("row", [*keyword_rows(), *format_rows()], ids=lambda row: row.keyword)
def test_a_row_says_why(row: KeywordRow) -> None:
    assert bool(row.narrowed) == (row.state == "narrowed")
    assert row.refused == "" or row.state in ("enforced", "narrowed")


def test_other_formats_only_describe() -> None:
    grammar = compiled({"type": "string", "format": "currency"})
    assert [(row.pointer, "not a known format" in row.why) for row in grammar.report.warnings] == [("/format", True)]


LATER = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
EARLIER = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize("draft", [{}, EARLIER])
def test_content_is_held_to_where_the_draft_lets_it(draft: dict[str, Any]) -> None:
    check({**draft, "contentEncoding": "base64"}, ['""', '"eA=="', '"YWJj"', "1"], ['"eA="', '"e-A="', '"a"'])
    check(
        {**draft, "contentMediaType": "application/json"},
        [r'"{\"a\": [1, {\"b\": \"x\"}]}"', '" -1.5e3 "', '"[]"', '"[[[null]]]"', r'"\"\\u0041\""'],
        ['"{:}"', '"[1,]"', '""', '"01"', r'"{\"a\" 1}"', r'"\"\\x\""'],
    )
    check({**draft, "contentMediaType": "text/html", "contentEncoding": "8bit"}, ['"<"'], [])


def test_content_describes_in_later_drafts() -> None:
    grammar = compiled({**LATER, "contentEncoding": "base64", "contentMediaType": "application/json"})
    assert grammar.report.enforced == ()
    check({**LATER, "contentEncoding": "base64"}, ['"eA="'], [])
