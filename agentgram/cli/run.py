"""``agentgram run``: one run, shown as it happens."""

from __future__ import annotations

import dataclasses
import os
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic_core import to_json

from agentgram.errors import AgentgramError, LimitExceeded, RunError
from agentgram.events import ApprovalNeeded, CallDenied, Event, MalformedCall, TextDelta, ToolCallEnd, ToolResult
from agentgram.formats.request import Only, ToolChoice
from agentgram.limits import Limits
from agentgram.messages import Message
from agentgram.models.base import ModelSettings
from agentgram.policy import Policy, Principal
from agentgram.run import RunResult

OK, FAILED, USAGE, DENIED, LIMIT, PENDING = 0, 1, 2, 3, 4, 5


class OnDenied(StrEnum):
    """What follows a denied call."""

    tell = "tell"
    stop = "stop"
    steer = "steer"


def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TOOLS.py[:agent]", help="A file with @tool functions, or an agent in it.", show_default=False
        ),
    ],
    prompt: Annotated[str, typer.Argument(help="What the user says.", show_default=False)],
    user: Annotated[str | None, typer.Option(help="The user's id, for the policy.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="A role of the user; may be given several times.")] = None,
    policy: Annotated[str | None, typer.Option(help="A policy file (TOML).")] = None,
    model: Annotated[str | None, typer.Option(help="A model by name, directory or hub id.")] = None,
    format: Annotated[str | None, typer.Option(help="The model's response format, by name or file.")] = None,
    tool_choice: Annotated[str, typer.Option(help="auto, required, none, or a tool's name.")] = "auto",
    on_denied: Annotated[OnDenied | None, typer.Option(help="What follows a denied call.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds the sampling.")] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(help="Tokens in one turn.")] = 256,
    steps: Annotated[int, typer.Option(help="Turns of the model.")] = 20,
    seconds: Annotated[float | None, typer.Option(help="Time for the whole run.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON event per line.")] = False,
) -> None:
    """Run a prompt against the tools of a file.

    Ends with 0 when all went well, 1 when the run failed, 2 for a usage error, 3 when a call was denied and none was
    made, 4 at a limit, 5 when a person has to decide about a call.
    """
    show = _Json() if json else _Text()
    try:
        from agentgram.cli.source import load_agent, load_model

        if role and not user:
            _fail("--role needs --user: a role belongs to somebody.", USAGE)
        agent = load_agent(
            source, model=load_model(model, format), policy=Policy.load(policy) if policy is not None else None
        )
        if on_denied is not None:
            agent.on_denied = on_denied.value
        principal = Principal(user, roles=role or ()) if user is not None else None
        choice: ToolChoice = tool_choice if tool_choice in ("auto", "required", "none") else Only(tool_choice)  # type: ignore[assignment]
        settings = ModelSettings(temperature=temperature, seed=seed, max_tokens=max_tokens)
        limits = Limits(steps=steps, seconds=seconds)
        with agent.stream_sync(prompt, user=principal, tool_choice=choice, settings=settings, limits=limits) as events:
            for event in events:
                show.event(event)
        result = events.result
    except RunError as error:
        if error.run is not None:
            show.end(error.run)
        _fail(str(error), LIMIT if isinstance(error, LimitExceeded) else FAILED)
    except AgentgramError as error:
        _fail(str(error), USAGE)
    show.end(result)
    raise typer.Exit(_code(result))


def _code(result: RunResult[Any]) -> int:
    if result.status == "pending":
        return PENDING
    refused = result.status == "denied" or (result.denied and all(call.error for call in result.calls))
    return DENIED if refused else OK


def _fail(message: str, code: int) -> None:
    typer.secho(f"error: {message}", fg="red", err=True, color=_color(sys.stderr))
    raise typer.Exit(code)


def _color(stream: Any) -> bool:
    return bool(stream.isatty() and not os.environ.get("NO_COLOR"))


class _Json:
    """One JSON object per line."""

    def event(self, event: Event) -> None:
        fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
        fields = {key: value.to_dict() if isinstance(value, Message) else value for key, value in fields.items()}
        self._line({"event": type(event).__name__, **fields})

    def end(self, result: RunResult[Any]) -> None:
        self._line({"event": "RunEnd", "status": result.status, "usage": result.usage, "run_id": result.run_id})

    def _line(self, value: dict[str, Any]) -> None:
        typer.echo(to_json(value, inf_nan_mode="null", fallback=repr).decode())


class _Text:
    """For people: coloured on a terminal, plain elsewhere."""

    def __init__(self) -> None:
        self._open = False
        """Whether the line that is being written has text on it."""

    def event(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                typer.echo(text, nl=False)
                self._open = not text.endswith("\n") if text else self._open
            case ToolCallEnd(call=call):
                arguments = ", ".join(f"{key}={_short(value)}" for key, value in call.arguments.items())
                self._line(f"call    {call.name}({arguments})", "cyan")
            case ToolResult(content=content, error=False):
                self._line(f"result  {content}", "green")
            case ToolResult(content=content):
                self._line(f"error   {content}", "red")
            case CallDenied(tool=tool, rule=rule):
                self._line(f"denied  {tool}: {rule}" if rule else f"denied  {tool}", "yellow")
            case ApprovalNeeded(call=call, rule=rule):
                self._line(f"waits   {call.name}: {rule or 'a person has to answer'}", "yellow")
            case MalformedCall(reason=reason):
                self._line(f"broken  {reason}", "red")

    def end(self, result: RunResult[Any]) -> None:
        usage = result.usage
        self._line(
            f"{_count(usage.steps, 'step')}, {_count(usage.tool_calls, 'call')}, {usage.denied} denied, "
            f"{_count(usage.sampled_tokens, 'token')} sampled, {usage.forced_tokens} forced",
            "bright_black",
        )

    def _line(self, text: str, color: str) -> None:
        if self._open:
            typer.echo()
        self._open = False
        typer.secho(text, fg=color, color=_color(sys.stdout))


def _short(value: Any) -> str:
    return to_json(value, inf_nan_mode="null", fallback=repr).decode()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
