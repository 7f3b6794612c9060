"""The command line on policies: what may come next, who may do what, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentgram.cli import app

SHOP = '''
from typing import Literal
from agentgram import tool

@tool
def get_order(order: int) -> str:
    """Get."""
    return ""

@tool(tags="write")
def refund(order: int, amount: float, currency: Literal["EUR", "USD"] = "EUR") -> str:
    """Refund."""
    return ""

@tool
def wipe() -> str:
    """Wipe."""
    return ""

@tool
def wipe_cache() -> str:
    """Wipe the cache."""
    return ""
'''
POLICY = """
[[allow]]
tools = ["get_*", "wipe_cache"]

[[allow]]
tools = ["refund"]
roles = ["support"]
name = "small"
where.amount = { le = 50 }
where.currency = "EUR"

[[ask]]
tools = ["refund"]
roles = ["support"]
by = "manager"
where.amount = { le = 500 }

[[deny]]
tools = ["*"]
users = ["mallory"]
name = "not mallory"
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "shop_with_policy.py").write_text(SHOP)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def invoke(files: Path, command: str, *arguments: str) -> Any:
    source, policy = files / "shop_with_policy.py", files / "policy.toml"
    return CliRunner().invoke(app, [command, str(source), *arguments, "--policy", str(policy)])


def told(files: Path, prefix: str, *who: str, format: str = "hermes") -> dict[str, Any]:
    done = invoke(files, "explain", prefix, *who, "--format", format, "--json")
    assert done.exit_code == 0, done.output
    return {line["text"]: line for line in map(json.loads, done.stdout.splitlines())}


ANN = ("--user", "ann", "--role", "support")
OPEN = '<tool_call>\\n{"name": "'


def test_explain_names(files: Path) -> None:
    assert [text[:6] for text in told(files, OPEN, *ANN)] == ["get_or", "refund", "wipe"]
    after = told(files, OPEN + "wipe", *ANN)
    assert [(line["allowed"], line["rule"]) for line in after.values()] == [(True, ""), (False, "no rule allows it")]
    denied = told(files, OPEN, "--user", "mallory")
    assert {line["rule"] for line in denied.values()} == {"not mallory"}
    bob = told(files, OPEN, "--user", "bob")
    assert {text.partition('"')[0]: line["allowed"] for text, line in bob.items()} == {
        "get_order": True,
        "refund": False,
        "wipe": True,
    }


def test_explain_arguments(files: Path) -> None:
    before = OPEN + 'refund", "arguments": {"order": 1, "amount": '
    after = told(files, before + "50", *ANN)
    assert (after["0"]["allowed"], after["1"]["allowed"]) == (True, False)
    assert (after["1"]["tool"], after["1"]["path"]) == ("refund", "amount")
    assert after["1"]["rule"].startswith("ask('refund'"), "the nearest of the rules: 501 is above its bound only"
    assert after["E"]["rule"].startswith("the spelling, by"), "50E0 would be within the bounds"
    assert after["E"]["path"] == "amount"
    gone = told(files, before + "501", *ANN)
    assert not any(line["allowed"] for line in gone.values()), "the prefix is denied already"
    assert list(told(files, "", *ANN)) == ["(179 texts)", ""], "text, or nothing"


@pytest.mark.parametrize("format", ["harmony", "llama3_json", "llama_pythonic", "qwen3_coder", "smollm2"])
def test_explain_in_other_formats(files: Path, format: str) -> None:
    from agentgram.formats import get_format
    from agentgram.tools.definition import ToolDefinition

    call = get_format(format).print_call(ToolDefinition(name="wipe"), {})
    before = call[: call.index("wipe") + 4]
    after = told(files, before.replace("\n", "\\n"), *ANN, format=format)
    assert {line["allowed"] for line in after.values()} == {True, False}
    assert {line["tool"] for line in after.values() if not line["allowed"]} == {"wipe"}


def test_explain_for_people(files: Path) -> None:
    done = invoke(files, "explain", OPEN + "wipe", *ANN)
    assert done.stdout.splitlines()[0].startswith("may    '_cache")
    assert done.stdout.splitlines()[1].startswith("denied ")
    assert done.stdout.splitlines()[1].endswith("(wipe: no rule allows it)")
    digits = invoke(files, "explain", OPEN + 'refund", "arguments": {"order": 1, "amount": 50', *ANN)
    assert "denied '1' '2' '3' '4'" in digits.stdout, "what one rule takes away is told in one line"
    wrong = invoke(files, "explain", "<tool_call>\\nx", *ANN)
    assert wrong.exit_code == 1
    assert r"goes wrong after '<tool_call>\n'" in wrong.output
    assert invoke(files, "explain", "x").exit_code == 2, "for whom?"


def test_matrix(files: Path) -> None:
    done = invoke(files, "matrix")
    assert done.exit_code == 0
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        "tool",
        "get_order",
        "refund",
        "",
        "",
        "wipe",
        "wipe_cache",
    ]
    assert done.stdout.splitlines()[0].endswith("  mallory")
    assert "ask manager: amount le(500)" in done.stdout
    table = json.loads(invoke(files, "matrix", "--json", "--user", "ann:support,x", "--user", "bob").stdout)
    assert table["refund"]["ann (support, x)"] == {
        "outcome": "yes",
        "bounds": ["ask manager: amount le(500)", "amount le(50), currency 'EUR'"],
    }
    assert table["refund"]["bob"] == {"outcome": "no", "bounds": []}
    page = files / "page.html"
    assert invoke(files, "matrix", "--html", str(page)).exit_code == 0
    assert '<td class="yes">yes<br><small>ask manager: amount le(500)</small>' in page.read_text()
    (files / "policy.toml").write_text('[[allow]]\ntools = ["refund"]\nwhere.order = "<b>"\n')
    invoke(files, "matrix", "--html", str(page))
    assert "<b>" not in page.read_text()
    without = CliRunner().invoke(app, ["matrix", str(files / "shop_with_policy.py")])
    assert (without.exit_code, "there is no policy" in without.output) == (2, True)


@pytest.mark.parametrize(
    ("policy", "code", "says"),
    [
        (POLICY, 0, "note    policy: nobody may call 'wipe': no rule allows it."),
        ('[[allow]]\ntools = ["*", "refnd"]\n', 1, "error   policy: 'refnd' of allow('*', 'refnd') matches no tool."),
        (
            '[[allow]]\ntools = ["refund"]\nroles = "a"\n[[deny]]\ntools = ["re*"]\n',
            0,
            "warning policy: allow('refund', roles=['a']) does nothing: all that it allows is denied.",
        ),
        (
            '[[allow]]\ntools = ["*"]\n[[ask]]\ntools = ["refund"]\nusers = "ann"\n',
            0,
            "warning policy: ask('refund', users=['ann']) does nothing: all that it asks about is allowed.",
        ),
        (
            '[[allow]]\ntools = ["refund"]\nwhen.after = "get_ordr"\n',
            1,
            "waits for a call of 'get_ordr', which is no tool. Did you mean 'get_order'?",
        ),
        (
            '[[allow]]\ntools = ["refund"]\nwhen.after = "get_order"\n',
            0,
            "warning policy: allow('refund', when=after('get_order')) does nothing: it waits for a call of 'get_order', "
            "and no rule allows it.",
        ),
        (
            '[[allow]]\ntools = ["*"]\n[[deny]]\ntools = ["refund"]\n',
            0,
            "nobody may call 'refund': all that is allowed",
        ),
        ('[[allow]]\ntools = ["refund"]\nwhere.order = { le = 3, ge = 5 }\n', 1, "nothing satisfies this schema"),
        (
            '[[allow]]\ntools = ["refund"]\nwhen.after = { tool = "get_order", same = "ordr" }\n',
            1,
            "speaks of argument 'ordr', which tool 'refund' has not.",
        ),
        ('[[allow]]\ntools = ["refund"]\nwhere.ordr = 3\n', 1, "which has none of this name. Did you mean 'order'?"),
        (
            '[[allow]]\ntools = ["refund"]\nwhere.order = { le = 3, ge = 5 }\nroles = ["a"]\n',
            1,
            "error   policy for anybody (a), refund: ",
        ),
    ],
)
def test_check(files: Path, policy: str, code: int, says: str) -> None:
    (files / "policy.toml").write_text(policy)
    done = invoke(files, "check")
    assert done.exit_code == code, done.output
    assert says in done.output
    assert invoke(files, "check", "--strict").exit_code == (1 if "warning policy" in says else code)


def test_check_in_a_format_that_cannot_tie_arguments_together(files: Path) -> None:
    rules = "".join(f'[[allow]]\ntools = ["refund"]\nwhere = {{ order = {n}, amount = {n} }}\n' for n in range(20))
    (files / "policy.toml").write_text(rules + '[[allow]]\ntools = ["get_*", "wipe*"]\n')
    assert invoke(files, "check").exit_code == 0
    done = invoke(files, "check", "--format", "qwen3_coder")
    assert done.exit_code == 1
    assert "this format writes each argument on its own" in done.output
