"""What several commands are given, and what they make of it."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NoReturn, TypeAlias

import typer

from agentgram.agent import Agent, RunOptions
from agentgram.limits import Limits
from agentgram.models.base import ModelSettings
from agentgram.policy import Policy, Principal

OK, FAILED, USAGE, DENIED, LIMIT, PENDING = 0, 1, 2, 3, 4, 5


class OnDenied(StrEnum):
    """What follows a denied call."""

    tell = "tell"
    stop = "stop"
    steer = "steer"


_SOURCE = typer.Argument(
    metavar="TOOLS.py[:agent]", help="A file with @tool functions, or an agent in it.", show_default=False
)
SourceArgument: TypeAlias = Annotated[str, _SOURCE]
OptionalSourceArgument: TypeAlias = Annotated[str | None, _SOURCE]
PolicyOption: TypeAlias = Annotated[str | None, typer.Option(help="A policy file (TOML).")]
FormatOption: TypeAlias = Annotated[str | None, typer.Option(help="The model's response format, by name or file.")]


@dataclass(kw_only=True)
class RunsOptions:
    """Options of every command that runs an agent; :func:`spread` gives them to one."""

    user: Annotated[str | None, typer.Option(help="The user's id, for the policy.")] = None
    role: Annotated[list[str] | None, typer.Option(help="A role of the user; may be given several times.")] = None
    policy: PolicyOption = None
    model: Annotated[str | None, typer.Option(help="A model by name, directory or hub id.")] = None
    format: FormatOption = None
    on_denied: Annotated[OnDenied | None, typer.Option(help="What follows a denied call.")] = None
    seed: Annotated[int | None, typer.Option(help="Seeds the sampling.")] = None
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0
    max_tokens: Annotated[int, typer.Option(help="Tokens in one turn.")] = 256
    steps: Annotated[int, typer.Option(help="Turns of the model.")] = 20

    def agent(self, source: str) -> Agent[Any, Any]:
        """The agent that the command is about.

        Raises:
            AgentgramError: Something that the options name cannot be loaded.
        """
        from agentgram.cli.source import load_agent, load_model

        policy = Policy.load(self.policy) if self.policy is not None else None
        agent = load_agent(source, model=load_model(self.model, self.format), policy=policy)
        if self.on_denied is not None:
            agent.on_denied = self.on_denied.value
        return agent

    def of_run(self) -> RunOptions:
        """What each of the command's runs is given."""
        return {
            "user": principal_of(self.user, self.role),
            "settings": ModelSettings(temperature=self.temperature, seed=self.seed, max_tokens=self.max_tokens),
            "limits": Limits(steps=self.steps),
        }


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command each field of :class:`RunsOptions` as an option, in place of its parameter ``options``."""
    fields = inspect.signature(RunsOptions, eval_str=True).parameters
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "options"]

    @functools.wraps(command)
    def spreading(**given: Any) -> None:
        command(options=RunsOptions(**{key: given.pop(key) for key in fields}), **given)

    # Typer reads the signature, with its annotations as values, and the annotations.
    places = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *fields.values())]
    spreading.__signature__ = inspect.Signature(places)  # type: ignore[attr-defined]
    spreading.__annotations__ = {parameter.name: parameter.annotation for parameter in places}
    return spreading


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
