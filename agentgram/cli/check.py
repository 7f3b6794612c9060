"""``agentgram check``: what is wrong with tools and a policy, before a model sees them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from agentgram.agent import Agent
from agentgram.cli.options import (
    FAILED,
    OK,
    USAGE,
    FormatOption,
    OptionalSourceArgument,
    PolicyOption,
    color,
    fail,
)
from agentgram.errors import AgentgramError, DefinitionError, GrammarError
from agentgram.policy import Policy, Principal
from agentgram.policy.survey import people, problems
from agentgram.tools import Tool


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a tool, the whole set or the policy."""

    level: Literal["error", "warning", "note"]
    where: str
    text: str


_COLORS = {"error": "red", "warning": "yellow", "note": "bright_black"}


def check(
    source: OptionalSourceArgument = None,
    policy: PolicyOption = None,
    format: FormatOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    keywords: Annotated[
        bool, typer.Option("--keywords", help="Only list what becomes of each keyword of JSON Schema.")
    ] = False,
) -> None:
    """Check the tools of a file and a policy; for continuous integration. No model is loaded.

    Compiles every schema, alone and together in a response format, and tells what of it the grammar does not enforce.
    Ends with 0 when all is well, 1 when there are errors, 2 when the file cannot be loaded.
    """
    from agentgram.cli.source import load_agent

    if keywords:
        from agentgram.engine.keywords import as_markdown

        typer.echo(as_markdown(), nl=False)
        return
    if source is None:
        fail("which tools? Name a Python file, or ask for --keywords.", USAGE)
    try:
        agent = load_agent(source, model=None, policy=Policy.load(policy) if policy is not None else None)
        findings = [*_findings(agent, format)]
    except AgentgramError as error:
        fail(str(error), USAGE)
    for finding in findings:
        line = f"{finding.level:<8}{finding.where}: {finding.text}"
        typer.secho(line, fg=_COLORS[finding.level], color=color(sys.stdout))
    counts = {level: sum(f.level == level for f in findings) for level in _COLORS}
    tools = len(agent.tools)
    typer.echo(
        f"{tools} tool{'' if tools == 1 else 's'}: {counts['error']} errors, {counts['warning']} warnings, "
        f"{counts['note']} notes"
    )
    raise typer.Exit(FAILED if counts["error"] or (strict and counts["warning"]) else OK)


def _findings(agent: Agent[Any, Any], format: str | None) -> Iterator[Finding]:
    broken = False
    for tool in agent.tools:
        for finding in _of_tool(tool):
            broken = broken or finding.level == "error"
            yield finding
    if not broken:
        yield from _of_all(agent, format)
    if agent.policy is not None:
        yield from _of_policy(agent.policy, agent, format)


def _of_tool(tool: Tool[..., Any]) -> Iterator[Finding]:
    from agentgram.engine import Engine, JsonSchema, Vocabulary

    definition = tool.definition
    if not definition.description:
        yield Finding(level="warning", where=tool.name, text="has no description: the model sees its name only.")
    for name, schema in definition.schema.get("properties", {}).items():
        if isinstance(schema, dict) and not schema.get("description"):
            yield Finding(level="note", where=tool.name, text=f"argument {name!r} has no description.")
    if tool.function is None:
        yield Finding(level="note", where=tool.name, text="is only declared: its calls wait for the caller.")
    try:
        schema = JsonSchema(dict(definition.schema), unsupported=definition.unsupported)
        report = Engine.shared(Vocabulary.byte_level()).compile(schema).report
    except GrammarError as error:
        yield Finding(level="error", where=tool.name, text=str(error))
        return
    for row in report.relaxed:
        text = f"{row.keyword} at {row.pointer or '/'} is left to validation: {row.why}"
        yield Finding(level="warning", where=tool.name, text=text)
    for row in report.warnings:
        text = f"{row.keyword} at {row.pointer or '/'} looks like a mistake: {row.why}"
        yield Finding(level="warning", where=tool.name, text=text)
    for row in report.narrowed:
        text = f"{row.keyword} at {row.pointer or '/'} is enforced more narrowly: {row.why}"
        yield Finding(level="note", where=tool.name, text=text)


def _of_all(agent: Agent[Any, Any], format: str | None) -> Iterator[Finding]:
    from agentgram.engine import Engine, Vocabulary
    from agentgram.formats import Request, get_format

    fmt = get_format(format or "hermes")
    request = Request(
        tools=[tool.definition for tool in agent.tools], output_schema=agent.output_schema, tool_choice="auto"
    )
    try:
        Engine.shared(Vocabulary.byte_level()).compile(fmt.grammar(request))
    except (GrammarError, DefinitionError) as error:
        yield Finding(level="error", where=f"format {fmt.name}", text=str(error))


def _of_policy(policy: Policy, agent: Agent[Any, Any], format: str | None) -> Iterator[Finding]:
    for level, text in problems(policy, agent.tools.definitions):
        yield Finding(level=level, where="policy", text=text)
    known: set[str] = set()
    for user in people(policy):
        yield from _of_user(policy, user, agent, format, known)


def _of_user(
    policy: Policy, user: Principal, agent: Agent[Any, Any], format: str | None, known: set[str]
) -> Iterator[Finding]:
    """Whether what a user may do can be compiled, tool by tool; what is ``known`` of another user is not looked at."""
    from agentgram.engine import Engine, JsonSchema, Vocabulary
    from agentgram.formats import Request, get_format

    fmt, engine = get_format(format or "hermes"), Engine.shared(Vocabulary.byte_level())
    for tool in agent.tools:
        where = f"policy for {user}, {tool.name}"
        try:
            narrowed = policy.decide(user, tool).narrowed
            text = "" if narrowed is None else json.dumps([narrowed.name, narrowed.schema])
            if narrowed is None or narrowed is tool.definition or text in known:
                continue
            known.add(text)
            engine.compile(JsonSchema(dict(narrowed.schema), whitespace="canonical", unsupported=narrowed.unsupported))
            engine.compile(fmt.grammar(Request(tools=[narrowed])))
        except (GrammarError, DefinitionError) as error:
            if str(error) not in known:
                known.add(str(error))
                yield Finding(level="error", where=where, text=str(error))
