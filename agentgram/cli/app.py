"""The commands, put together."""

from __future__ import annotations

import typer

from agentgram.cli import inspect, run

app = typer.Typer(
    name="agentgram",
    help="Tool calling whose calls are valid by construction.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="run")(run.run)
app.command(name="formats")(inspect.formats)
