"""``agentgram formats``: what is shipped."""

from __future__ import annotations

import typer


def formats() -> None:
    """List the shipped response formats, each with what begins a call in it."""
    from agentgram.formats import formats as names
    from agentgram.formats import get_format

    width = max(map(len, names()), default=0)
    for name in names():
        triggers = "  ".join(repr(trigger)[1:-1] for trigger in get_format(name).triggers)
        typer.echo(f"{name:<{width}}  {triggers}".rstrip())
