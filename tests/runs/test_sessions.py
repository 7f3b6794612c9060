"""Conversations in SQLite: whose they are, one run at a time, and nothing lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentgram import (
    Agent,
    DefinitionError,
    Limits,
    PolicyError,
    Principal,
    RunError,
    Session,
    SessionBusy,
    SQLiteSession,
)
from agentgram.messages import INTERRUPTED, assistant, user
from agentgram.testing import ScriptedModel, call

ROOT = Path(__file__).parents[2]
ALICE, BOB = Principal("alice"), Principal("bob")


def add(a: int, b: int) -> int:
    return a + b


def scripted(*turns: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(turns), **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


class TestConversations:
    def test_go_on_where_they_ended(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        assert isinstance(session, Session)
        assert session.messages == ()
        agent = scripted("Hello.", call("add", a=1, b=2), "3", tools=[add])
        first = agent.run_sync("Hi", session=session)
        second = agent.run_sync("1 + 2?", session=SQLiteSession(path, "a"))
        assert [m.role for m in second.messages] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
        assert second.messages[:2] == first.messages
        assert second.new_messages == second.messages[2:]
        assert session.messages == second.messages
        assert agent.model.requests[1].permitted.messages == (*first.messages, user("1 + 2?"))

    def test_of_one_file_do_not_mix(self, path: Path) -> None:
        agent = scripted("one", "two")
        agent.run_sync("1", session=SQLiteSession(path, "a"), user=ALICE)
        agent.run_sync("2", session=SQLiteSession(path, "b"), user=BOB)
        assert SQLiteSession(path, "a").messages == (user("1"), assistant("one"))
        assert SQLiteSession.ids(path) == ["a", "b"]
        assert SQLiteSession.ids(path, owner="bob") == ["b"]
        SQLiteSession(path, "b").delete()
        SQLiteSession(path, "b").delete()
        assert SQLiteSession.ids(path) == ["a"]
        assert SQLiteSession(path, "b").messages == ()

    def test_keep_what_a_failed_run_did(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        with pytest.raises(RunError) as caught:
            scripted(call("add", a=1, b=2), tools=[add]).run_sync("?", session=session)
        assert session.messages == caught.value.run.messages
        assert [m.role for m in session.messages] == ["user", "assistant", "tool"]
        with pytest.raises(RunError):
            scripted("x").run_sync("again", session=session, limits=Limits(input_tokens=0))
        assert session.messages[-1] == user("again")

    async def test_keep_what_a_cancelled_run_did(self, path: Path) -> None:
        started = asyncio.Event()

        async def endless() -> None:
            started.set()
            await asyncio.Event().wait()

        session = SQLiteSession(path, "a")
        agent = scripted([call("add", a=1, b=2), call("endless")], "fine", tools=[add, endless])
        run = asyncio.create_task(agent.run("?", session=session))
        await started.wait()
        await asyncio.sleep(0.05)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [p.content for p in session.messages[-1].results] == ["3", "Cancelled while it ran."]
        assert (await agent.run("And now?", session=session)).output == "fine", "it was released"

    def test_calls_are_kept_before_they_are_made_and_results_before_they_are_told(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        kept: list[list[str]] = []

        def look() -> str:
            kept.append([m.role for m in session.messages])
            return "x"

        agent = scripted(call("look"), "done", tools=[look])
        for event in (stream := agent.stream_sync("?", session=session)):
            if type(event).__name__ == "TextDelta":
                kept.append([m.role for m in session.messages])
        assert kept == [["user", "assistant"], ["user", "assistant", "tool"]]
        assert session.messages == stream.result.messages

    def test_hold_calls_that_wait_for_somebody(self, path: Path) -> None:
        from agentgram import Tool
        from agentgram.messages import ToolResultPart, tool_results

        ask = Tool.from_schema("ask", {"type": "object", "properties": {}})
        session = SQLiteSession(path, "a")
        agent = scripted(call("ask"), "thanks", call("ask"), "never mind", tools=[ask])
        (waiting,) = agent.run_sync("?", session=session).pending
        answer = tool_results(ToolResultPart(name="ask", content="yes", call_id=waiting.id))
        assert agent.run_sync(answer, session=session).output == "thanks"
        assert session.messages[2] == answer
        assert agent.run_sync("?", session=session).pending
        agent.run_sync("Forget it.", session=session)
        assert session.messages[-3].results[0].content == INTERRUPTED

    def test_take_no_other_history(self, path: Path) -> None:
        with pytest.raises(DefinitionError, match="give one of them"):
            scripted("x").run_sync("?", session=SQLiteSession(path, "a"), messages=[])


class TestOwners:
    def test_nobody_else_gets_in(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        agent = scripted("x", "y")
        agent.run_sync("?", user=ALICE, session=session)
        assert session.owner == "alice"
        for stranger in (BOB, None):
            with pytest.raises(PolicyError, match="session 'a' does not belong to"):
                agent.run_sync("?", user=stranger, session=session)
        assert agent.run_sync("?", user=ALICE, session=session).output == "y"

    def test_one_without_an_owner_is_not_taken_over(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        agent = scripted("x", "y")
        agent.run_sync("?", session=session)
        assert session.owner is None
        with pytest.raises(PolicyError):
            agent.run_sync("?", user=ALICE, session=session)

    async def test_a_stranger_learns_nothing_while_it_is_held(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        await session.claim("run", "alice")
        with pytest.raises(PolicyError):
            await session.claim("other", "bob")


class TestClaims:
    async def test_one_run_at_a_time(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        async with scripted("a b c").stream("?", session=session) as stream:
            await anext(stream)
            with pytest.raises(SessionBusy, match="another run has session 'a'"):
                await scripted("x").run("?", session=SQLiteSession(path, "a"))
            with pytest.raises(SessionBusy):
                session.delete()
            assert (await scripted("x").run("?", session=SQLiteSession(path, "b"))).output == "x"
            async for _ in stream:
                pass
        assert (await scripted("x").run("?", session=session)).output == "x"

    async def test_many_at_once_get_in_one_by_one_or_not_at_all(self, path: Path) -> None:
        async def one(n: int) -> bool:
            try:
                await scripted(f"{n}").run(f"{n}?", session=SQLiteSession(path, "a"))
            except SessionBusy:
                return False
            return True

        done = await asyncio.gather(*(one(n) for n in range(20)))
        texts = [m.text for m in SQLiteSession(path, "a").messages]
        assert sum(done) >= 1
        assert sorted(texts) == sorted(t for n in range(20) if done[n] for t in (f"{n}?", f"{n}"))
        assert all(question == f"{answer}?" for question, answer in zip(texts[::2], texts[1::2], strict=True))

    async def test_a_lease_ends_and_the_late_holder_can_write_nothing(self, path: Path) -> None:
        session = SQLiteSession(path, "a", lease=0.01)
        old = await session.claim("old", None)
        assert await session.append("old", old.version, [user("1")]) == 1
        await asyncio.sleep(0.02)
        new = await session.claim("new", None)
        assert new.messages == (user("1"),)
        with pytest.raises(SessionBusy, match="taken over"):
            await session.append("old", 1, [user("late")])
        await session.release("old")
        await session.renew("old")
        assert await session.append("new", new.version, [user("2")]) == 2
        with pytest.raises(SessionBusy):
            await session.append("new", 1, [user("again")])
        assert session.messages == (user("1"), user("2"))

    async def test_a_lease_is_renewed_while_a_tool_takes_its_time(self, path: Path) -> None:
        session = SQLiteSession(path, "a", lease=0.2)
        busy = 0

        async def slow() -> str:
            nonlocal busy
            for _ in range(8):
                await asyncio.sleep(0.1)
                try:
                    await session.claim("other", None)
                except SessionBusy:
                    busy += 1
            return "done"

        assert (await scripted(call("slow"), "x", tools=[slow]).run("?", session=session)).output == "x"
        assert busy == 8

    def test_mistakes(self, path: Path) -> None:
        with pytest.raises(DefinitionError, match="id is ''"):
            SQLiteSession(path, "")
        with pytest.raises(DefinitionError, match="lease is 0"):
            SQLiteSession(path, "a", lease=0)
        path.write_bytes(b"this is no database" * 100)
        with pytest.raises(RunError, match=r"chats\.db cannot be used: file is not a database"):
            _ = SQLiteSession(path, "a").messages

    def test_a_file_of_another_version_is_left_alone(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.execute("PRAGMA user_version = 99")
        db.close()
        with pytest.raises(RunError, match="written by another version"):
            _ = SQLiteSession(path, "a").messages


WORKER = """
import sys, json, signal
from agentgram import Agent, SQLiteSession, SessionBusy
from agentgram.testing import ScriptedModel, call
path, who, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def wait() -> str:
    if who == "victim":
        print("waiting", flush=True)
        signal.pause()
    return "ok"
done = 0
while done < rounds:
    agent = Agent(ScriptedModel([call("wait"), f"{who} {done}"]), tools=[wait])
    try:
        agent.run_sync(f"{who} {done}?", session=SQLiteSession(path, "a"))
    except SessionBusy:
        continue
    done += 1
"""


def worker(path: Path, who: str, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(path), who, str(rounds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


class TestProcesses:
    def test_take_turns(self, path: Path) -> None:
        workers = [worker(path, f"w{n}", 5) for n in range(3)]
        for process in workers:
            process.communicate(timeout=120)
            assert process.returncode == 0
        messages = SQLiteSession(path, "a").messages
        assert len(messages) == 3 * 5 * 4
        for start in range(0, len(messages), 4):
            question, asked, _, answer = messages[start : start + 4]
            assert question.text == f"{answer.text}?", "no run is torn by another"
            assert asked.calls[0].name == "wait"
        for n in range(3):
            mine = [m.text for m in messages if m.role == "assistant" and m.text.startswith(f"w{n}")]
            assert mine == [f"w{n} {i}" for i in range(5)]

    def test_a_killed_one_blocks_nobody_and_its_call_is_known_to_be_open(self, path: Path) -> None:
        victim = worker(path, "victim", 1)
        assert victim.stdout is not None
        assert victim.stdout.readline() == "waiting\n"
        session = SQLiteSession(path, "a")
        with pytest.raises(SessionBusy):
            scripted("x").run_sync("?", session=session)
        victim.send_signal(signal.SIGKILL)
        victim.communicate(timeout=60)
        result = scripted("fine").run_sync("And now?", session=session)
        assert [m.role for m in session.messages] == ["user", "assistant", "tool", "user", "assistant"]
        assert session.messages[2].results[0].content == INTERRUPTED
        assert result.new_messages == session.messages[2:]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
    def test_a_fork_uses_a_connection_of_its_own(self, path: Path) -> None:
        session = SQLiteSession(path, "a")
        scripted("x").run_sync("?", session=session)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                scripted("y").run_sync("child", session=session)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        scripted("z").run_sync("parent", session=session)
        assert [m.text for m in session.messages] == ["?", "x", "child", "y", "parent", "z"]


def test_messages_survive_with_all_their_parts(path: Path) -> None:
    from agentgram.messages import MalformedPart, Message, ReasoningPart, TextPart, ToolCall, ToolResultPart

    parts = (
        ReasoningPart(text="hm\x00 \ud83d"),
        TextPart(text="é😀"),
        ToolCall(name="f", arguments={"a": [1, None, {"b": 1.5}]}, id="x"),
        MalformedPart(raw="<", reason="?"),
    )
    messages = [
        Message(role="assistant", parts=parts),
        Message(role="tool", parts=(ToolResultPart(name="f", content="1", call_id="x", error=True),)),
    ]

    async def write() -> None:
        session = SQLiteSession(path, "a")
        snapshot = await session.claim("r", None)
        await session.append("r", snapshot.version, messages)

    asyncio.run(write())
    assert SQLiteSession(path, "a").messages == tuple(messages)
    assert json.dumps([m.to_dict() for m in messages])
