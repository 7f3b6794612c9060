"""What several commands are given, and what they make of it."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated, Any, NoReturn, TypeAlias

import typer

from agentgram.agent import Agent
from agentgram.policy import Policy, Principal

OK, FAILED, USAGE, DENIED, LIMIT, PENDING = 0, 1, 2, 3, 4, 5


class OnDenied(StrEnum):
    """What follows a denied call."""

    tell = "tell"
    stop = "stop"
    steer = "steer"


SourceArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TOOLS.py[:agent]", help="A file with @tool functions, or an agent in it.", show_default=False
    ),
]
UserOption: TypeAlias = Annotated[str | None, typer.Option(help="The user's id, for the policy.")]
RoleOption: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="A role of the user; may be given several times.")
]
PolicyOption: TypeAlias = Annotated[str | None, typer.Option(help="A policy file (TOML).")]
ModelOption: TypeAlias = Annotated[str | None, typer.Option(help="A model by name, directory or hub id.")]
FormatOption: TypeAlias = Annotated[str | None, typer.Option(help="The model's response format, by name or file.")]
OnDeniedOption: TypeAlias = Annotated[OnDenied | None, typer.Option(help="What follows a denied call.")]
SeedOption: TypeAlias = Annotated[int | None, typer.Option(help="Seeds the sampling.")]
TemperatureOption: TypeAlias = Annotated[float, typer.Option(help="0 takes the likeliest token.")]
MaxTokensOption: TypeAlias = Annotated[int, typer.Option(help="Tokens in one turn.")]
StepsOption: TypeAlias = Annotated[int, typer.Option(help="Turns of the model.")]


def agent_of(
    source: str, *, model: str | None, format: str | None, policy: str | None, on_denied: OnDenied | None
) -> Agent[Any, Any]:
    """The agent that a command is about.

    Raises:
        AgentgramError: Something that the options name cannot be loaded.
    """
    from agentgram.cli.source import load_agent, load_model

    agent = load_agent(
        source, model=load_model(model, format), policy=Policy.load(policy) if policy is not None else None
    )
    if on_denied is not None:
        agent.on_denied = on_denied.value
    return agent


def principal_of(user: str | None, role: list[str] | None) -> Principal | None:
    """The user that a command acts for; ends the command where there are roles and no user."""
    if role and not user:
        fail("--role needs --user: a role belongs to somebody.", USAGE)
    return Principal(user, roles=role or ()) if user is not None else None


def fail(message: str, code: int) -> NoReturn:
    """Ends the command with a message and a code."""
    typer.secho(f"error: {message}", fg="red", err=True, color=color(sys.stderr))
    raise typer.Exit(code)


def color(stream: Any) -> bool:
    """Whether a stream is a terminal that may be coloured (https://no-color.org)."""
    return bool(stream.isatty() and not os.environ.get("NO_COLOR"))
