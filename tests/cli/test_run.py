"""The command line: what it prints, and with which code it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import agentgram
from agentgram.cli import app
from agentgram.formats import formats
from agentgram.testing import ScriptedModel, call

ROOT = Path(agentgram.__file__).parents[1]
SHOP = '''
"""A shop."""
from __future__ import annotations
from dataclasses import dataclass
from agentgram import Agent, Policy, allow, ask, tool
from agentgram.testing import ScriptedModel, call

@dataclass
class Order:
    number: int

@tool
def order_status(order: int) -> str:
    """Where an order is."""
    return {17: "shipped"}[order]

@tool
def cancel(order: Order) -> str:
    """Cancel an order."""
    return f"{order.number} cancelled"

def helper(x):
    return x

def scripted(*turns, **options):
    return Agent(ScriptedModel(turns), tools=[order_status, cancel], **options)

good = scripted(["Let me see.", call("order_status", order=17)], "It was shipped.")
guarded = scripted(call("cancel", order={"number": 1}), "I may not.", policy=Policy(allow("order_*")))
mixed = scripted([call("order_status", order=17), call("cancel", order={"number": 1})], "Done.",
                 policy=Policy(allow("order_*")))
stopping = scripted(call("cancel", order={"number": 1}), policy=Policy(allow("order_*")), on_denied="stop")
asking = scripted(call("cancel", order={"number": 1}), policy=Policy(ask("*")))
endless = scripted(*[call("order_status", order=17)] * 9)
silent = scripted()
failing = scripted(call("order_status", order=99), "Sorry.")
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop_for_tests.py"
    path.write_text(SHOP)
    return path


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_text(shop: Path) -> None:
    done = invoke("run", f"{shop}:good", "Where is order 17?")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "Let me see.",
        "call    order_status(order=17)",
        "result  shipped",
        "It was shipped.",
        "2 steps, 1 call, 0 denied, 9 tokens sampled, 0 forced",
    ]
    assert done.stderr == ""


def test_json(shop: Path) -> None:
    done = invoke("run", f"{shop}:good", "Where is order 17?", "--json")
    assert done.exit_code == 0
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["event"] for e in events] == [
        *["TextDelta"] * 3,
        "ToolCallStart",
        "ArgumentsDelta",
        "ToolCallEnd",
        "StepEnd",
        "ToolResult",
        *["TextDelta"] * 3,
        "StepEnd",
        "FinalOutput",
        "RunEnd",
    ]
    assert events[5]["call"] == {"name": "order_status", "arguments": {"order": 17}, "id": "call_1"}
    assert events[6]["message"]["parts"][0] == {"kind": "text", "text": "Let me see."}
    assert events[-2]["output"] == "It was shipped."
    assert events[-1]["status"] == "done"
    assert events[-1]["usage"]["tool_calls"] == 1


@pytest.mark.parametrize(
    ("agent", "options", "code", "says"),
    [
        ("good", [], 0, "It was shipped."),
        ("failing", [], 0, "error   order_status failed."),
        ("silent", [], 1, "turn 1 was asked for"),
        ("guarded", [], 2, "each run needs user="),
        ("guarded", ["--role", "support"], 2, "--role needs --user"),
        ("guarded", ["--user", "bob"], 3, "denied  cancel: no rule allows it"),
        ("guarded", ["--user", "bob", "--tool-choice", "cancel"], 2, "which the policy denies to bob"),
        ("mixed", ["--user", "bob"], 0, "denied  cancel"),
        ("stopping", ["--user", "bob"], 3, "denied  cancel"),
        ("guarded", ["--user", "bob", "--on-denied", "stop"], 3, "1 step, "),
        ("endless", ["--steps", "2"], 4, "would use 3 steps"),
        ("asking", ["--user", "bob"], 5, "waits   cancel: ask('*')"),
        ("nobody", [], 2, "has no agent named 'nobody'"),
        ("good", ["--tool-choice", "order_stats"], 2, "Did you mean 'order_status'?"),
        ("good", ["--temperature", "-1"], 2, "temperature is -1"),
        ("good", ["--policy", "none.toml"], 2, "no policy can be read from none.toml"),
        ("good", ["--format", "herms"], 2, "there is no format 'herms'"),
        ("good", ["--nonsense"], 2, "No such option"),
    ],
)
def test_exit_codes(shop: Path, agent: str, options: list[str], code: int, says: str) -> None:
    done = invoke("run", f"{shop}:{agent}", "go", *options)
    assert done.exit_code == code, done.output
    assert says in done.output
    assert "Traceback" not in done.output


def test_a_policy_file_takes_the_agents_place(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[[allow]]\ntools = ["cancel"]\nroles = ["support"]\n')
    who = ["--user", "ann", "--role", "sales", "--policy", path]
    assert invoke("run", f"{shop}:guarded", "go", *who).exit_code == 3
    done = invoke("run", f"{shop}:guarded", "go", *who, "--role", "support")
    assert done.exit_code == 0
    assert "result  1 cancelled" in done.stdout


def test_the_tools_of_a_file(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    script = ScriptedModel([call("order_status", order=17), "It was shipped."])

    def load(name: str) -> ScriptedModel:
        asked.append(name)
        return script

    monkeypatch.setattr("agentgram.models.load_model", load)
    done = invoke("run", shop, "go", "--seed", "3", "--tool-choice", "required", "--max-tokens", "50")
    assert done.exit_code == 0, done.output
    assert asked == ["smollm2"]
    request = script.requests[0]
    assert [d.name for d in request.permitted.tools] == ["order_status", "cancel"]
    assert (request.settings.seed, request.settings.max_tokens) == (3, 50)
    assert request.permitted.tool_choice == "required"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "has no tools: decorate a function with @tool"),
        ("1 / 0", "could not be loaded: ZeroDivisionError: division by zero"),
        ("def f(:", "could not be loaded: SyntaxError"),
        ("from agentgram import tool\n@tool\ndef f(a): ...", "parameter 'a' of tool 'f' has no type"),
    ],
)
def test_files_that_hold_no_tools(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "broken_for_tests.py"
    path.write_text(text)
    done = invoke("run", path, "go")
    assert done.exit_code == 2
    assert says in done.output


def test_a_file_that_is_not_there() -> None:
    done = invoke("run", "none.py", "go")
    assert done.exit_code == 2
    assert "there is no file none.py" in done.output


def test_formats_are_listed() -> None:
    done = invoke("formats")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(formats())
    assert "<tool_call>" in done.stdout


@pytest.mark.parametrize("command", ["run", "chat"])
def test_help_tells_what_each_option_is_for(command: str) -> None:
    told = invoke(command, "--help").stdout
    assert "TOOLS.py[:agent]" in told
    options = [line.split() for line in told.partition("Options:")[2].splitlines() if line.startswith("  --")]
    assert {"--user", "--role", "--policy", "--format", "--max-tokens"} <= {words[0] for words in options}
    assert all(len(words) > 2 for words in options), told
    assert "The user's id, for the policy." in told


def test_version() -> None:
    done = invoke("--version")
    assert (done.exit_code, done.stdout.strip()) == (0, agentgram.__version__)


def run_process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "agentgram", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=Path(sys.prefix))


def test_as_a_process_in_a_pipe(shop: Path) -> None:
    done = run_process("run", f"{shop}:guarded", "go", "--user", "bob")
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines()[0] == "denied  cancel: no rule allows it"
    assert "\x1b" not in done.stdout, "no colour in a pipe"
    failed = run_process("run", f"{shop}:silent", "go")
    assert (failed.returncode, failed.stdout.count("\n")) == (1, 1)
    assert failed.stderr.startswith("error: the script of model")
    assert run_process().returncode == 2, "no command is a usage error"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are Unix's")
def test_colour_on_a_terminal(shop: Path) -> None:
    import pty

    def output(**environment: str) -> str:
        ours, theirs = pty.openpty()
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        env.pop("NO_COLOR", None)
        command = [sys.executable, "-m", "agentgram", "run", f"{shop}:good", "go"]
        subprocess.run(command, stdout=theirs, stderr=theirs, check=True, env={**env, **environment}, cwd=shop.parent)
        os.close(theirs)
        text = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # Linux says so that the other end is closed
                break
            if not chunk:
                break
            text += chunk
        os.close(ours)
        return text.decode()

    assert "\x1b[36mcall    order_status(order=17)\x1b[0m" in output()
    assert "\x1b" not in output(NO_COLOR="1")
