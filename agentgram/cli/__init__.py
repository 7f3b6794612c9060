"""The command ``agentgram``.

Exit codes: 0 ok, 1 the run failed or problems were found, 2 usage, 3 denied, 4 a limit was reached, 5 an approval is
pending.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agentgram import __version__
from agentgram.cli import audit, chat, check, explain, inspect, matrix, run

app = typer.Typer(
    name="agentgram",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(name="run")(run.run)
app.command(name="chat")(chat.chat)
app.command(name="explain")(explain.explain)
app.command(name="matrix")(matrix.matrix)
app.command(name="check")(check.check)
app.command(name="formats")(inspect.formats)
app.add_typer(audit.app, name="audit")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tool calling whose calls are valid by construction."""


def main() -> None:
    """Runs the command line."""
    app()
