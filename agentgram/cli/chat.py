"""``agentgram chat``: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from agentgram.agent import Agent, RunOptions
from agentgram.cli.options import USAGE, RunsOptions, SourceArgument, color, fail, spread
from agentgram.cli.run import Transcript
from agentgram.errors import AgentgramError, RunCancelled, RunError
from agentgram.messages import Message
from agentgram.sessions import SQLiteSession

HELP = "/new forgets the conversation, /exit (or Ctrl-D) ends. Ctrl-C stops an answer."


@spread
def chat(
    source: SourceArgument,
    *,
    options: RunsOptions,
    session: Annotated[
        str | None, typer.Option(metavar="FILE[:ID]", help="Keep the conversation in this file (SQLite).")
    ] = None,
) -> None:
    """Talk with the tools of a file.

    Reads one prompt from each line. Ctrl-C stops the answer that is being written, not the conversation.
    """
    try:
        each = options.of_run()
        if session is not None:
            path, _, name = session.partition(":")
            each["session"] = SQLiteSession(path, name or "chat")
        agent = options.agent(source)
    except AgentgramError as error:
        fail(str(error), USAGE)
    if sys.stdin.isatty():
        typer.echo(HELP)
    _Chat(agent, each).run()


class _Chat:
    """One conversation: in a session, or in memory."""

    def __init__(self, agent: Agent[Any, Any], options: RunOptions) -> None:
        self.agent = agent
        self.options = options
        self.history: tuple[Message, ...] = ()

    def run(self) -> None:
        for line in _lines():
            match line.split():
                case []:
                    pass
                case ["/exit" | "/quit"]:
                    return
                case ["/help"]:
                    typer.echo(HELP)
                case ["/new"]:
                    self.forget()
                case [word, *_] if word.startswith("/"):
                    _complain(f"there is no command {word}. {HELP}")
                case _:
                    self.turn(line)

    def forget(self) -> None:
        self.history = ()
        if isinstance(kept := self.options.get("session"), SQLiteSession):
            try:
                kept.delete()
            except AgentgramError as error:
                _complain(str(error))

    def turn(self, prompt: str) -> None:
        show = Transcript()
        if "session" not in self.options:
            self.options["messages"] = self.history
        try:
            events = self.agent.stream_sync(prompt, **self.options)
            with suppress(KeyboardInterrupt), events:  # leaving it before its end stops the answer
                for event in events:
                    show.event(event)
            result = events.result
        except RunCancelled as error:
            show.line("stopped", "yellow")
            self.keep(error)
            return
        except RunError as error:
            show.line("", "")
            self.keep(error)
            _complain(str(error))
            return
        except AgentgramError as error:
            _complain(str(error))
            return
        self.history = result.messages
        show.end(result)

    def keep(self, error: RunError) -> None:
        """What a run has done before it was stopped belongs to the conversation."""
        if error.run is not None:
            self.history = error.run.messages


def _lines() -> Iterator[str]:
    while True:
        if sys.stdin.isatty():
            typer.secho("> ", fg="bright_black", nl=False, color=color(sys.stdout))
            sys.stdout.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:  # nothing is being written that it could stop
            typer.echo()
            return
        if not line:
            return
        yield line.strip()


def _complain(message: str) -> None:
    typer.secho(f"error: {message}", fg="red", err=True, color=color(sys.stderr))
