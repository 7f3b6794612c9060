"""``agentgram matrix``: who may do what, as a table."""

from __future__ import annotations

import html as escaping
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_json

from agentgram.cli.options import USAGE, PolicyOption, SourceArgument, fail
from agentgram.errors import AgentgramError, PolicyError
from agentgram.policy import Policy, Principal
from agentgram.policy.survey import ANYBODY, Cell, cell, people

_WIDEST = 44
"""Characters of a column on a terminal."""


def matrix(
    source: SourceArgument,
    policy: PolicyOption = None,
    user: Annotated[
        list[str] | None,
        typer.Option(metavar="ID[:ROLE,ROLE]", help="A user; may be given several times. Else whom the rules name."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write it as a page.")] = None,
) -> None:
    """Show which user may call which tool, and within which bounds."""
    from agentgram.cli.source import load_agent

    try:
        agent = load_agent(source, model=None, policy=Policy.load(policy) if policy is not None else None)
        if agent.policy is None:
            raise PolicyError("there is no policy: give --policy FILE, or an agent that has one.")
        users = [_principal(text) for text in user] if user else people(agent.policy)
        tools = agent.tools.definitions
        rows = {tool.name: [cell(agent.policy, who, tool) for who in users] for tool in tools}
    except AgentgramError as error:
        fail(str(error), USAGE)
    heads = [_head(who) for who in users]
    if json:
        table = {name: dict(zip(heads, cells, strict=True)) for name, cells in rows.items()}
        typer.echo(to_json(table, indent=2).decode())
    elif html is not None:
        Path(html).write_text(_page(heads, rows), encoding="utf-8")
    else:
        typer.echo(_table(heads, rows))


def _principal(text: str) -> Principal:
    name, _, roles = text.partition(":")
    return Principal(name, roles=[role for role in roles.split(",") if role])


def _head(user: Principal) -> str:
    roles = ", ".join(sorted(user.roles))
    if user.id == ANYBODY:
        return f"role {roles}" if roles else ANYBODY
    return f"{user.id} ({roles})" if roles else user.id


def _table(heads: list[str], rows: dict[str, list[Cell]]) -> str:
    grid = [["tool", *heads]]
    for name, cells in rows.items():
        columns = [[name], *([c.outcome, *map(_cut, c.bounds)] for c in cells)]
        grid += map(list, zip_longest(*columns, fillvalue=""))
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    padded = (map(str.ljust, row, widths) for row in grid)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def _cut(text: str) -> str:
    return f"  {text}" if len(text) <= _WIDEST else f"  {text[:_WIDEST]}..."


_STYLE = (
    "body{font-family:sans-serif}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.3em .6em;"
    "text-align:left;vertical-align:top}.yes{background:#e3f4e3}.ask{background:#fff4d6}.no{color:#888}"
)


def _page(heads: list[str], rows: dict[str, list[Cell]]) -> str:
    """A page of its own, without anything from elsewhere."""

    def shown(c: Cell) -> str:
        bounds = "".join(f"<br><small>{escaping.escape(bound)}</small>" for bound in c.bounds)
        return f'<td class="{c.outcome}">{c.outcome}{bounds}</td>'

    head = "".join(f"<th>{escaping.escape(text)}</th>" for text in ("tool", *heads))
    body = "\n".join(
        f"<tr><th>{escaping.escape(name)}</th>{''.join(map(shown, cells))}</tr>" for name, cells in rows.items()
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Who may do what</title>\n'
        f"<style>{_STYLE}</style>\n<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></html>\n"
    )
