"""``check``: finds what is wrong with tools and a policy without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentgram.cli import app

GOOD = '''
from agentgram import tool

@tool
def order_status(order: int) -> str:
    """Where an order is.

    Args:
        order: The order's number.
    """
    return "shipped"
'''
LOOSE = """
from agentgram import Tool
SCHEMA = {"type": "object", "properties": {"x": {"type": "string", "contentEncoding": "base64", "description": "?"},
          "y": {"description": "?", "type": "array", "items": {"type": "string"}, "uniqueItems": True}}}
t = Tool.from_schema("loose", SCHEMA, run=print, unsupported="relax", description="Loose.")
u = Tool.from_schema("bare", {"type": "object", "properties": {"x": {"type": "integer"}}})
"""
WRONG = """
from agentgram import Tool
t = Tool.from_schema("wrong", {"type": "object", "properties": {"x": {"pattern": "("}}}, description="x", run=print)
"""


def check(path: Path, text: str, *options: object) -> Any:
    file = path / "tools_for_check.py"
    file.write_text(text)
    return CliRunner().invoke(app, ["check", str(file), *map(str, options)])


def test_all_is_well(tmp_path: Path) -> None:
    done = check(tmp_path, GOOD, "--strict")
    assert done.exit_code == 0, done.output
    assert done.stdout == "1 tool: 0 errors, 0 warnings, 0 notes\n"


def test_what_a_model_would_miss(tmp_path: Path) -> None:
    done = check(tmp_path, LOOSE)
    assert done.exit_code == 0, done.output
    assert "warning bare: has no description" in done.stdout
    assert "note    bare: argument 'x' has no description." in done.stdout
    assert "note    bare: is only declared" in done.stdout
    assert check(tmp_path, LOOSE, "--strict").exit_code == 1


def test_a_schema_that_cannot_be_enforced(tmp_path: Path) -> None:
    done = check(tmp_path, WRONG)
    assert done.exit_code == 1
    assert "error   wrong: " in done.stdout
    assert "/properties/x" in done.stdout


@pytest.mark.parametrize(
    ("policy", "code", "says"),
    [
        ('[[allow]]\ntools = ["order_*"]\n', 0, "0 errors, 0 warnings, 0 notes"),
        (
            '[[allow]]\ntools = ["order_statos"]\n',
            1,
            "error   policy: 'order_statos' of allow('order_statos') matches no tool.",
        ),
        ('[[deny]]\ntools = ["*"]\n', 0, "note    policy: nobody may call 'order_status'"),
        ("[[allow]]\n", 2, "names no tool"),
    ],
)
def test_policies(tmp_path: Path, policy: str, code: int, says: str) -> None:
    (tmp_path / "policy.toml").write_text(policy)
    done = check(tmp_path, GOOD, "--policy", tmp_path / "policy.toml")
    assert done.exit_code == code, done.output
    assert says in done.output


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    assert check(tmp_path, "x = 1").exit_code == 2
    assert check(tmp_path, GOOD, "--format", "herms").exit_code == 2


def test_keywords_of_json_schema() -> None:
    done = CliRunner().invoke(app, ["check", "--keywords"])
    assert done.exit_code == 0
    page = (Path(__file__).parents[2] / "docs" / "json-schema.md").read_text("utf-8")
    shown = page.partition("<!-- keywords:begin -->\n")[2].partition("<!-- keywords:end -->")[0]
    assert done.stdout == shown, "docs/json-schema.md is older than the compiler: put the output of --keywords into it"


def test_a_source_is_needed() -> None:
    done = CliRunner().invoke(app, ["check"])
    assert done.exit_code == 2
    assert "--keywords" in done.output
