"""The conversation in the terminal: it remembers, it goes on after a mistake, and Ctrl-C stops an answer only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import agentgram
from agentgram import SQLiteSession
from agentgram.cli import app

ROOT = Path(agentgram.__file__).parents[1]
TOOLS = '''
import asyncio, os, signal
from agentgram import Agent, Policy, allow, tool
from agentgram.testing import ScriptedModel, call

# A shell's background jobs, tests among them, are begun with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

@tool
async def interrupt() -> str:
    """Does what Ctrl-C does, and takes for ever."""
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()
    return ""

def echo(request):
    return " | ".join(m.text for m in request.permitted.messages if m.role == "user")

agent = Agent(ScriptedModel([echo] * 9), tools=[interrupt])
guarded = Agent(ScriptedModel([echo] * 9), tools=[interrupt], policy=Policy(allow("*")))
stopped = Agent(ScriptedModel(["One moment.", [call("interrupt")], echo]), tools=[interrupt])
short = Agent(ScriptedModel([echo]), tools=[])
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "chat_for_tests.py"
    path.write_text(TOOLS)
    return path


def chat(source: str, text: str, *options: str) -> Any:
    return CliRunner().invoke(app, ["chat", source, *options], input=text)


def said(output: str) -> list[str]:
    return [line for line in output.splitlines() if "tokens sampled" not in line and "token sampled" not in line]


def test_it_remembers_and_forgets(tools: Path) -> None:
    done = chat(f"{tools}:agent", "one\n\ntwo\n/new\nthree\n/exit\nnever\n")
    assert done.exit_code == 0, done.output
    assert said(done.stdout) == ["one", "one | two", "three"]


def test_commands(tools: Path) -> None:
    done = chat(f"{tools}:agent", "/help\n/nonsense\nhi\n")
    assert said(done.stdout)[0].startswith("/new forgets")
    assert "there is no command /nonsense" in done.stderr
    assert said(done.stdout)[-1] == "hi"


def test_a_failed_turn_does_not_end_it(tools: Path) -> None:
    done = chat(f"{tools}:short", "one\ntwo\n")
    assert done.exit_code == 0
    assert said(done.stdout)[0] == "one"
    assert "turn 2 was asked for" in done.stderr


def test_mistakes_end_it_before_it_begins(tools: Path) -> None:
    assert chat(f"{tools}:nobody", "hi\n").exit_code == 2
    assert chat(f"{tools}:agent", "hi\n", "--role", "x").exit_code == 2
    assert "each run needs user=" in chat(f"{tools}:guarded", "hi\n").stderr
    assert said(chat(f"{tools}:guarded", "hi\n", "--user", "bob").stdout) == ["hi"]


def test_a_session_is_kept(tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "chats.db"
    option = ("--session", f"{file}:mine", "--user", "bob")
    chat(f"{tools}:agent", "one\n", *option)
    assert said(chat(f"{tools}:agent", "two\n", *option).stdout) == ["one | two"]
    assert [m.text for m in SQLiteSession(file, "mine").messages] == ["one", "one", "two", "one | two"]
    assert said(chat(f"{tools}:agent", "/new\nthree\n", *option).stdout) == ["three"]
    assert "does not belong to" in chat(f"{tools}:agent", "hi\n", "--session", f"{file}:mine", "--user", "eve").stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kept", [False, True])
def test_ctrl_c_stops_the_answer_and_not_the_conversation(tools: Path, tmp_path: Path, kept: bool) -> None:
    options = ["--session", str(tmp_path / "chats.db")] if kept else []
    command = [sys.executable, "-m", "agentgram", "chat", f"{tools}:stopped", *options]
    done = subprocess.run(
        command,
        input="one\ntwo\nthree\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert said(done.stdout) == ["One moment.", "call    interrupt()", "stopped", "one | two | three"]
