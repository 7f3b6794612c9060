"""``agentgram formats``: what is shipped."""

from __future__ import annotations

import typer


def formats() -> None:
    """List the shipped response formats, each with the models that speak it."""
    from agentgram.formats import formats as names
    from agentgram.formats import get_format

    width = max(map(len, names()), default=0)
    for name in names():
        typer.echo(f"{name:<{width}}  {get_format(name).description}".rstrip())
