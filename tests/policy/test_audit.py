"""The audit: an intent before each call, an outcome after it, and nothing that can be changed unseen."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr
from typer.testing import CliRunner

from agentgram import (
    Agent,
    Audit,
    DefinitionError,
    LimitExceeded,
    Limits,
    Policy,
    PolicyError,
    Principal,
    RunError,
    Sensitive,
    allow,
    ask,
    tool,
)
from agentgram.cli import app
from agentgram.formats import get_format
from agentgram.policy import le
from agentgram.policy.audit import read, verify
from agentgram.testing import AdversarialModel, ScriptedModel, call

KEY = b"0123456789abcdef" * 2
BOB = Principal("bob", roles="support")
ROOT = Path(__file__).parents[2]


@tool
def refund(order: int, amount: int) -> str:
    """Give money back."""
    if order == 13:
        raise ValueError("no such order")
    return "refunded"


POLICY = Policy(allow("refund", where={"amount": le(50)}, name="small"), ask("refund", where={"amount": le(500)}))


def run(directory: Path, *turns: Any, tools: Any = (refund,), policy: Policy | None = POLICY, **options: Any) -> Any:
    with Audit(directory, key=KEY) as audit:
        agent = Agent(ScriptedModel([*turns, "done"]), tools=tools, policy=policy, audit=audit)
        return agent.run_sync("go", user=BOB, **options)


def lines(directory: Path) -> list[dict[str, Any]]:
    return list(read(directory))


def test_intents_and_outcomes(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        call("refund", order=17, amount=50),
        call("refund", order=13, amount=1),
        call("refund", order=17, amount=900),
        [call("refund", order=1, amount=2), call("refund", order=17, amount=100)],
    )
    assert result.status == "pending"
    told = lines(tmp_path)
    assert [(r["event"], r.get("status"), r.get("call")) for r in told] == [
        ("intent", None, "call_1"),
        ("outcome", "done", "call_1"),
        ("intent", None, "call_2"),
        ("outcome", "failed", "call_2"),
        ("denied", None, None),
        *sorted(
            [("intent", None, "call_3"), ("outcome", "done", "call_3"), ("asked", None, "call_4")],
            key=lambda r: [(t["event"], t.get("status"), t.get("call")) for t in told].index(r),
        ),
    ]
    first, denied = told[0], told[4]
    assert first["arguments"] == {"order": 17, "amount": 50}
    assert (first["user"], first["roles"], first["rule"], first["tool"]) == ("bob", ["support"], "small", "refund")
    assert first["policy"] == [POLICY.version]
    assert {r["run"] for r in told} == {result.run_id}
    assert (denied["path"], denied["rule"], denied["tool"]) == (["amount"], str(POLICY.rules[1]), "refund")
    assert {r["enforced_by"] for r in told if r["event"] == "intent"} == {"validator"}
    assert verify(tmp_path, KEY) == []


def test_the_intent_is_there_before_the_call(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    @tool
    def look() -> str:
        seen.append([r["event"] for r in lines(tmp_path)])
        return ""

    run(tmp_path, call("look"), tools=[look], policy=None)
    assert seen == [["intent"]]


def test_without_an_audit_no_call(tmp_path: Path) -> None:
    ran: list[int] = []

    @tool
    def look() -> str:
        ran.append(1)
        return ""

    audit = Audit(tmp_path, key=KEY)
    audit.close()
    with pytest.raises(RunError, match="cannot be written"):
        Agent(ScriptedModel([call("look"), "done"]), tools=[look], audit=audit).run_sync("x")
    assert ran == []


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    with Audit(tmp_path, key=KEY) as audit:
        audit.write("intent", tool="look")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (audit.path.stat().st_size + 50, before[1]))
        try:
            with pytest.raises(RunError, match="cannot be written"):
                audit.write("intent", tool="pay")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        audit.write("intent", tool="mail")
    assert [record["tool"] for record in lines(tmp_path)] == ["look", "mail"]
    assert verify(tmp_path, KEY) == []


def test_what_the_grammar_kept_out_is_told_apart(tmp_path: Path) -> None:
    wish = get_format("hermes").print_call(refund.definition, {"order": 1, "amount": 900})
    fine = get_format("hermes").print_call(refund.definition, {"order": 1, "amount": 9})
    with Audit(tmp_path, key=KEY) as audit:
        agent = Agent(AdversarialModel([wish, fine], seed=1), tools=[refund], policy=POLICY, audit=audit)
        with pytest.raises(LimitExceeded):
            agent.run_sync("x", user=BOB, limits=Limits(steps=2))
    assert [(r["event"], r["enforced_by"]) for r in lines(tmp_path) if "enforced_by" in r] == [
        ("denied", "grammar"),
        ("intent", "grammar"),
    ]


def test_a_policy_that_changes_is_told_with_both_versions(tmp_path: Path) -> None:
    policy = Policy(allow("*"))
    old = policy.version

    @tool
    def change() -> str:
        policy.replace(allow("change"), allow("look"))
        return ""

    @tool(sequential=True)
    def look() -> str:
        return ""

    run(tmp_path, [call("change"), call("look")], tools=[change, look], policy=policy)
    assert [r["policy"] for r in lines(tmp_path) if r["event"] == "intent"] == [[old], [old, policy.version]]


class Card(BaseModel):
    number: Annotated[str, Sensitive]
    holder: str


@tool
def pay(card: Card, pin: SecretStr, notes: list[Annotated[str, Sensitive]], public: str = "") -> str:
    """Pay."""
    assert pin.get_secret_value() == "s3cret-pin"
    return "paid"


SECRETS = ("s3cret-pin", "s3cret-number", "s3cret-note")
PAY = call(
    "pay", card={"number": "s3cret-number", "holder": "bob"}, pin="s3cret-pin", notes=["s3cret-note"], public="hello"
)


@pytest.mark.parametrize("policy", [None, Policy(ask("pay")), Policy(allow("pay", where={"public": "x"}))])
def test_nothing_sensitive_is_told(tmp_path: Path, policy: Policy | None, caplog: pytest.LogCaptureFixture) -> None:
    events: list[Any] = []
    caplog.set_level("DEBUG")
    result = run(tmp_path, PAY, tools=[pay], policy=policy, on_event=lambda event, _: events.append(event))
    assert policy is not None or [c.status for c in result.calls] == ["done"]
    told = "".join(map(str, lines(tmp_path))) + "".join(map(str, events)) + caplog.text
    assert not [secret for secret in SECRETS if secret in told]
    assert "hello" in told or policy is not None
    assert "(hidden)" in told or (policy is not None and result.denied)


# ---- nothing can be changed ----


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, str]:
    directory = tmp_path_factory.mktemp("audit")
    run(directory, *[call("refund", order=n, amount=n) for n in range(1, 5)])
    (file,) = directory.glob("*.jsonl")
    return file.read_bytes(), file.with_name(file.name + ".head").read_bytes(), file.name


def problems(directory: Path, whole: tuple[bytes, bytes, str], data: bytes, head: bytes | None = None) -> list[Any]:
    file = directory / whole[2]
    file.write_bytes(data)
    file.with_name(file.name + ".head").write_bytes(whole[1] if head is None else head)
    return verify(file, KEY)


def test_any_byte(tmp_path: Path, whole: tuple[bytes, bytes, str]) -> None:
    data = whole[0]
    assert problems(tmp_path, whole, data) == []
    places = range(len(data)) if os.environ.get("HYPOTHESIS_PROFILE") == "long" else range(0, len(data), 23)
    for place in places:
        for other in (data[place] ^ 1, data[place] ^ 0x20):
            changed = data[:place] + bytes([other]) + data[place + 1 :]
            assert problems(tmp_path, whole, changed), place


def test_any_line(tmp_path: Path, whole: tuple[bytes, bytes, str]) -> None:
    rows = whole[0].splitlines(keepends=True)
    assert len(rows) == 8
    for n in range(len(rows)):
        assert problems(tmp_path, whole, b"".join(rows[:n] + rows[n + 1 :])), f"without line {n + 1}"
        assert problems(tmp_path, whole, b"".join(rows[:n])), f"cut after line {n}"
        assert problems(tmp_path, whole, b"".join([*rows[: n + 1], rows[n], *rows[n + 1 :]])), f"line {n + 1} twice"
    for n in range(len(rows) - 1):
        assert problems(tmp_path, whole, b"".join([*rows[:n], rows[n + 1], rows[n], *rows[n + 2 :]])), "reordered"
    for size in range(1, 40):
        assert problems(tmp_path, whole, whole[0][:-size]), "cut off at the tail"


@given(st.randoms(use_true_random=False))
def test_random_damage(whole: tuple[bytes, bytes, str], tmp_path_factory: Any, rng: random.Random) -> None:
    data = bytearray(whole[0])
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data))
        data[start : start + rng.randint(0, 9)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 9)))
    if bytes(data) != whole[0]:
        assert problems(tmp_path_factory.mktemp("damaged"), whole, bytes(data))


def test_the_head_and_the_key(tmp_path: Path, whole: tuple[bytes, bytes, str]) -> None:
    data, head, name = whole
    for other in (b"", b"{}", b"[]", b"\xff", head[:-1], head.replace(b'"n":8', b'"n":7')):
        assert problems(tmp_path, whole, data, other)
    (tmp_path / f"{name}.head").unlink()
    assert verify(tmp_path / name, KEY)
    assert problems(tmp_path, whole, data) == []
    assert verify(tmp_path / name, b"another key, as long")
    renamed = tmp_path / "other.jsonl"
    renamed.write_bytes(data)
    (tmp_path / "other.jsonl.head").write_bytes(head)
    assert verify(renamed, KEY), "one file in another's place"
    with pytest.raises(PolicyError, match="at least 16 bytes"):
        verify(renamed, b"short")
    with pytest.raises(RunError, match="there is no audit"):
        verify(tmp_path / "none", KEY)


def test_a_line_that_was_being_written_says_so(tmp_path: Path, whole: tuple[bytes, bytes, str]) -> None:
    (found,) = problems(tmp_path, whole, whole[0] + b'{"n":9,"ti')
    assert "breaks off" in str(found)


def test_a_process_that_is_killed_leaves_its_intent(tmp_path: Path) -> None:
    program = f"""
import os
from agentgram import Agent, Audit, tool
from agentgram.testing import ScriptedModel, call

@tool
def die() -> str:
    os._exit(9)

Agent(ScriptedModel([call("die")]), tools=[die], audit=Audit({str(tmp_path)!r}, key={KEY!r})).run_sync("x")
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 9
    assert [(r["event"], r["tool"]) for r in lines(tmp_path)] == [("intent", "die")]
    assert verify(tmp_path, KEY) == []


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="at least 16 bytes"):
        Audit(tmp_path, key=b"short")
    with pytest.raises(PolicyError, match="at least 16 bytes"):
        Audit(tmp_path, key="0123456789abcdef")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="no audit can be written"):
        Audit(tmp_path / "file", key=KEY)
    with pytest.raises(DefinitionError, match="audit is"):
        Agent(ScriptedModel([]), audit="audit")  # type: ignore[arg-type]


def test_on_the_command_line(tmp_path: Path) -> None:
    run(tmp_path, call("refund", order=17, amount=50), call("refund", order=17, amount=900))
    key = tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    runner = CliRunner()
    done = runner.invoke(app, ["audit", "verify", str(tmp_path), "--key-file", str(key)])
    assert (done.exit_code, done.stdout) == (0, "1 files, 3 lines: as they were written\n")
    done = runner.invoke(app, ["audit", "verify", str(tmp_path)], env={"AGENTGRAM_AUDIT_KEY": "another key, as long"})
    assert done.exit_code == 1
    assert "not as they were written" in done.stdout
    assert runner.invoke(app, ["audit", "verify", str(tmp_path)], env={"AGENTGRAM_AUDIT_KEY": ""}).exit_code == 2
    assert runner.invoke(app, ["audit", "verify", str(tmp_path / "none"), "--key-file", str(key)]).exit_code == 2
    shown = runner.invoke(app, ["audit", "show", str(tmp_path)]).stdout.splitlines()
    assert [line.split()[1:3] for line in shown] == [["intent", "bob"], ["outcome", "bob"], ["denied", "bob"]]
    assert "refund(order=17, amount=50)  rule=small" in shown[0]
    assert "path=amount" in shown[2]
    (only,) = runner.invoke(app, ["audit", "show", str(tmp_path), "--event", "denied", "--json"]).stdout.splitlines()
    assert json.loads(only)["path"] == ["amount"]
    assert runner.invoke(app, ["audit", "show", str(tmp_path), "--user", "ann"]).stdout == ""
