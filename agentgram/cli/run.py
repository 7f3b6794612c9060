"""``agentgram run``: one run, shown as it happens."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated, Any

import typer
from pydantic_core import to_json

from agentgram.cli.options import (
    DENIED,
    FAILED,
    LIMIT,
    OK,
    PENDING,
    USAGE,
    RunsOptions,
    SourceArgument,
    color,
    fail,
    spread,
)
from agentgram.errors import AgentgramError, LimitExceeded, RunError
from agentgram.events import ApprovalNeeded, CallDenied, Event, MalformedCall, TextDelta, ToolCallEnd, ToolResult
from agentgram.formats.request import Only
from agentgram.limits import Limits
from agentgram.messages import Message
from agentgram.task import RunResult


@spread
def run(
    source: SourceArgument,
    prompt: Annotated[str, typer.Argument(help="What the user says.", show_default=False)],
    *,
    options: RunsOptions,
    tool_choice: Annotated[str, typer.Option(help="auto, required, none, or a tool's name.")] = "auto",
    seconds: Annotated[float | None, typer.Option(help="Time for the whole run.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON event per line.")] = False,
) -> None:
    """Run a prompt against the tools of a file.

    Ends with 0 when all went well, 1 when the run failed, 2 for a usage error, 3 when a call was denied and none was
    made, 4 at a limit, 5 when a person has to decide about a call.
    """
    show = _Json() if json else Transcript()
    try:
        each = options.of_run()
        agent = options.agent(source)
        each["tool_choice"] = tool_choice if tool_choice in ("auto", "required", "none") else Only(tool_choice)  # type: ignore[typeddict-item]
        each["limits"] = Limits(steps=options.steps, seconds=seconds)
        with agent.stream_sync(prompt, **each) as events:
            for event in events:
                show.event(event)
        result = events.result
    except RunError as error:
        if error.run is not None:
            show.end(error.run)
        fail(str(error), LIMIT if isinstance(error, LimitExceeded) else FAILED)
    except AgentgramError as error:
        fail(str(error), USAGE)
    show.end(result)
    raise typer.Exit(_code(result))


def _code(result: RunResult[Any]) -> int:
    if result.status == "pending":
        return PENDING
    refused = result.status == "denied" or (result.denied and all(call.error for call in result.calls))
    return DENIED if refused else OK


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


class Transcript:
    """For people: coloured on a terminal, plain elsewhere."""

    def __init__(self) -> None:
        self._open = False
        """Whether the line that is being written has text on it."""

    def event(self, event: Event) -> None:
        """Shows one event, where there is something to show."""
        match event:
            case TextDelta(text=text):
                typer.echo(text, nl=False)
                self._open = not text.endswith("\n") if text else self._open
            case ToolCallEnd(call=call):
                arguments = ", ".join(f"{key}={_short(value)}" for key, value in call.arguments.items())
                self.line(f"call    {call.name}({arguments})", "cyan")
            case ToolResult(content=content, error=False):
                self.line(f"result  {content}", "green")
            case ToolResult(content=content):
                self.line(f"error   {content}", "red")
            case CallDenied(tool=tool, rule=rule):
                self.line(f"denied  {tool}: {rule}" if rule else f"denied  {tool}", "yellow")
            case ApprovalNeeded(call=call, rule=rule):
                self.line(f"waits   {call.name}: {rule or 'a person has to answer'}", "yellow")
            case MalformedCall(reason=reason):
                self.line(f"broken  {reason}", "red")

    def end(self, result: RunResult[Any]) -> None:
        """Shows what the run has used."""
        usage = result.usage
        if result.finish == "length":
            self.line("cut     the answer has as many tokens as --max-tokens allows", "yellow")
        self.line(
            f"{_count(usage.steps, 'step')}, {_count(usage.tool_calls, 'call')}, {usage.denied} denied, "
            f"{_count(usage.sampled_tokens, 'token')} sampled, {usage.forced_tokens} forced",
            "bright_black",
        )

    def line(self, text: str, fg: str) -> None:
        """A line of its own, also where text has been written without an end."""
        if self._open:
            typer.echo()
        self._open = False
        typer.secho(text, fg=fg, color=color(sys.stdout))


def _short(value: Any) -> str:
    return to_json(value, inf_nan_mode="null", fallback=repr).decode()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
