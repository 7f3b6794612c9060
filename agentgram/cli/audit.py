"""``agentgram audit``: whether an audit is whole, and what is in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_json

from agentgram.cli.options import FAILED, USAGE, color, fail
from agentgram.errors import AgentgramError

app = typer.Typer(no_args_is_help=True, help="Verify and show audits.")
PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="A file NAME.jsonl, or a directory of such files.")]
KEY = "AGENTGRAM_AUDIT_KEY"


@app.command()
def verify(
    path: PathArgument,
    key_file: Annotated[str | None, typer.Option(help=f"A file with the key; {KEY} holds it otherwise.")] = None,
) -> None:
    """Verify that an audit is as it was written: each line in its place, and none missing.

    Ends with 0 when it is, 1 when it is not, 2 when there is no audit or no key.
    """
    from agentgram.policy import audit

    try:
        files = audit.files(path)
        findings = audit.verify(path, _key(key_file))
        lines = sum(file.read_bytes().count(b"\n") for file in files)
    except (AgentgramError, OSError) as error:
        fail(str(error), USAGE)
    for finding in findings:
        typer.secho(str(finding), fg="red", color=color(sys.stdout))
    typer.echo(
        f"{len(files)} files, {lines} lines: {'not as they were written' if findings else 'as they were written'}"
    )
    raise typer.Exit(FAILED if findings else 0)


def _key(key_file: str | None) -> bytes:
    if key_file is not None:
        return Path(key_file).read_bytes().strip()
    given = os.environ.get(KEY)
    if not given:
        fail(f"verify needs the key: --key-file FILE, or the environment variable {KEY}.", USAGE)
    return given.encode()


@app.command()
def show(
    path: PathArgument,
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only of this tool.")] = None,
    run: Annotated[str | None, typer.Option(help="Only of this run (the beginning of its id is enough).")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this kind, such as intent or denied.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the lines as they are.")] = False,
) -> None:
    """Show what is in an audit. It is not verified."""
    from agentgram.policy import audit

    try:
        for record in audit.read(path):
            wanted = {"user": user, "tool": tool, "event": event}
            if any(value is not None and record.get(key) != value for key, value in wanted.items()):
                continue
            if run is not None and not str(record.get("run", "")).startswith(run):
                continue
            typer.echo(to_json(record).decode() if json else _line(record))
    except AgentgramError as error:
        fail(str(error), USAGE)


def _line(record: dict[str, Any]) -> str:
    call = str(record.get("tool", ""))
    if "arguments" in record:
        call += f"({', '.join(f'{key}={to_json(value).decode()}' for key, value in record['arguments'].items())})"
    rest = [f"{key}={_word(record[key])}" for key in ("status", "path", "rule", "enforced_by", "by") if key in record]
    words = (str(record["time"])[:19], f"{record['event']:<8}", f"{record.get('user', '-'):<10}", call, *rest)
    return "  ".join(words).rstrip()


def _word(value: Any) -> str:
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)
