"""The benchmarks run to their end on little work, and write what they say they write. No time is looked at."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


def has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


needs_data = pytest.mark.skipif(
    not (has("tiktoken") and has("bfcl_eval")),
    reason="the benchmarks need pip install tiktoken, and pip install --no-deps bfcl-eval==2026.3.23",
)
VOCABULARY = "llama3" if has("llama_models") else "bytes"
PAGE = "# Page\n\n<!-- here:begin -->\nold\n<!-- here:end -->\n\nThe rest.\n"


def run(script: str, *words: str | Path) -> str:
    command = [sys.executable, FOLDER / script, "--vocabulary", VOCABULARY, *words]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows_of(table: str) -> list[list[str]]:
    """The cells of a page's tables, heads and rules left out."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if "---" not in line and "---" not in after
    ]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Loads the benchmarks' own modules, which are found beside the scripts only."""
    monkeypatch.syspath_prepend(FOLDER)
    names = [path.stem for path in FOLDER.glob("*.py")]
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@needs_data
@pytest.mark.slow
def test_engines(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.jsonl"
    page.write_text(PAGE)
    names = ["agentgram", *(["llguidance"] if has("llguidance") else [])]
    little = "--tools 5 --pool 12 --requests 3 --users 3 --repeats 1 --seconds 30".split()
    printed = run("engines.py", *little, "--engines", *names, "--json", rows, "--docs", page, "--mark", "here")

    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["tools"], row["engine"]) for row in found] == [(5, name) for name in [*names, "agent"]]
    for row in found:
        assert row["vocabulary"] == VOCABULARY
        if row["engine"] != "agent":
            assert (row["requests"], row["refused"]) == (3, 0)
            assert 0 < row["compile"] < row["first"] < row["total"]
            assert 0 < row["median"] <= row["p99"] <= row["slowest"] and row["mean"] <= row["slowest"]
    agent = found[-1]
    assert agent["engine"] == "agent"
    for when in ("first", "next"):
        assert 0 < agent[f"{when} mask"] < agent[f"{when} all"]

    head, _, tail = page.read_text().partition(printed.strip())
    assert head == "# Page\n\n<!-- here:begin -->\n" and tail == "\n<!-- here:end -->\n\nThe rest.\n"
    table = rows_of(printed)
    assert [row[:2] for row in table if len(row) > 2] == [["5", n] for n in names]
    assert [row[-1] for row in table if row[1:2] == ["agentgram"]] == ["1x"]

    again = run("engines.py", *little, "--engines", "agentgram", "--users", "0", "--json", rows)
    assert [row[1] for row in rows_of(again) if len(row) > 2] == names  # what the file holds counts
    assert len(rows.read_text().splitlines()) == len(found) + 1


@needs_data
@pytest.mark.slow
def test_ablation_of_tools(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    little = ["--tools", "3", "--pool", "5", "--requests", "2", "--repeats", "1", "--prefill", "0.01"]
    printed = run("ablation.py", *little, "--docs", page, "--mark", "here")
    assert printed.strip() in page.read_text()
    table = {row[0]: row for row in rows_of(printed)}
    assert len(table) == 7 and {row[1] for row in table.values()} == {"2"}
    whole, *others = table.values()
    assert whole[-1] == "1x"
    built = {name: int(row[9].replace(",", "")) for name, row in table.items()}
    assert built[whole[0]] > 0 and built["no adaptive masks"] == built["no cross-grammar cache"] == 0
    assert all(row[-1].endswith("x") for row in others)


@needs_data
@pytest.mark.parametrize("packed", [False, True])
def test_ablation_of_schemas(packed: bool, tmp_path: Path) -> None:
    cases = [
        {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}, "tests": [{"valid": True, "data": {"a": 1}}]},
        {"schema": {"enum": ["x", 2]}, "tests": [{"valid": False, "data": 1}, {"valid": True, "data": 2}]},
        {"schema": {"type": "string", "pattern": "(?=a)"}, "tests": [{"valid": True, "data": "a"}]},  # is not compiled
        {"schema": {"type": "null"}, "tests": [{"valid": False, "data": 1}]},  # has nothing to write
    ]  # fmt: skip
    text = "".join(json.dumps(case) + "\n" for case in cases).encode()
    file = tmp_path / ("cases.jsonl.gz" if packed else "cases.jsonl")
    file.write_bytes(gzip.compress(text) if packed else text)
    printed = run("ablation.py", "--schemas", file, "--repeats", "1", "--prefill", "0.01")
    table = rows_of(printed)
    assert len(table) == 6 and {row[1] for row in table} == {"2"}  # there is no TagDispatch to go without


@needs_data
def test_ablation_of_long_repetitions() -> None:
    little = ["--count", "1", "--repeats", "1", "--prefill", "0.01", "--vocabulary", "bytes"]
    printed = run("ablation.py", "--long", *little)
    assert {row[1] for row in rows_of(printed)} == {"1"}


@needs_data
def test_requests(modules: Any) -> None:
    """Every request has its own tools, two calls of which are written, with arguments that their schemas admit."""
    data = modules("data")
    encoded = data.vocabulary("bytes")
    pool = data.functions(40, seed=1)
    assert len({f.name for f in pool}) == 40
    work = list(data.jobs(pool, 20, 10, encoded, seed=1))
    assert len({job.tools for job in work}) == 20
    for job in work:
        assert len(set(job.tools)) == 10 and job.tokens[-1] == encoded.end
        text = bytes(job.tokens[:-1]).decode()
        calls = [part.partition(data.END)[0].partition(">") for part in text.split(data.TRIGGER)[1:]]
        assert len(calls) == 2
        offered = {pool[index].name: pool[index].schema for index in job.tools}
        for name, _, arguments in calls:
            jsonschema.validate(json.loads(arguments), offered[name])


@needs_data
def test_what_is_missing_is_named(
    modules: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engines, data = modules("engines"), modules("data")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert list(engines.installed(["agentgram", "xgrammar-lazy", "llguidance"])) == ["agentgram"]
    said = capsys.readouterr().err
    assert "pip install xgrammar==" in said and "pip install llguidance==" in said
    with pytest.raises(SystemExit, match="pip install --no-deps llama-models=="):
        data.vocabulary("llama3")


def test_figures(modules: Any, tmp_path: Path) -> None:
    tables = modules("tables")
    values = [random.Random(3).uniform(0, 1e7) for _ in range(101)]
    assert [tables.percentile(values, part) for part in (0.5, 0.99, 1)] == [sorted(values)[i] for i in (50, 99, 100)]
    assert [tables.duration(us) for us in (0.25, 3.14159, 999.7, 1500, 2.5e6, float("nan"))] == [
        "0.25 us", "3.1 us", "1 ms", "1.5 ms", "2.5 s", "-",
    ]  # fmt: skip
    short, long = tables.bars({"a": 10.0, "bb": 1000.0}, each=4).splitlines()
    assert short == "a   # 10 us" and long == "bb  ######### 1 ms"
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(SystemExit, match="<!-- there:begin -->"):
        tables.rewrite(page, "there", "new")
    tables.rewrite(page, "here", "new\n")
    assert page.read_text() == PAGE.replace("old", "new")


def test_refusals_are_grouped_and_written_into_a_page(tmp_path: Path) -> None:
    distinct = {"type": "array", "items": {"type": "object"}, "uniqueItems": True}
    rows: list[dict[str, Any]] = [
        {
            "id": "one",
            "schema": {"type": "integer"},
            "tests": [{"data": 1, "valid": True}, {"data": "a", "valid": False}],
        },
        {"id": "two", "schema": {"properties": {"a": distinct}}, "tests": []},
        {"id": "three", "schema": distinct, "tests": []},
        {"id": "four", "schema": {"pattern": "a(?=b)"}, "tests": []},
        {"id": "wrong", "schema": {"type": "integer"}, "tests": [{"data": 1, "valid": False}]},
    ]
    data, page = tmp_path / "schemas.jsonl.gz", tmp_path / "page.md"
    with gzip.open(data, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    page.write_text(PAGE.replace("here", "refusals"))
    command = [sys.executable, FOLDER / "refusals.py", data, "--page", page]
    shown = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.strip() in page.read_text()
    assert "Of 5 schemas 3 are refused (60.0%). With the others, 3 documents were tried." in shown
    assert "refused a valid one: 1." in shown
    assert (
        "| 2 | distinct items cannot be enforced here: an item may be an array or an object |\n| 1 | the pattern has"
        in shown
    )


def test_policy(modules: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    policy = modules("policy")
    monkeypatch.setattr(policy, "TOOLS", 40)
    policy.main()
    printed = capsys.readouterr().out
    assert "a user may call 16 of 40 tools, 16 of them in a way of their own" in printed
    before, after = printed.splitlines()[-1].split()[2], printed.splitlines()[-1].split()[7]
    assert int(after) <= int(before) + 2
