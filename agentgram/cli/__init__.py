"""The command ``agentgram``.

Exit codes: 0 ok, 1 the run failed, 2 usage, 3 denied, 4 a limit was reached, 5 an approval is pending.
"""

from __future__ import annotations


def main() -> None:
    """Runs the command line; what it needs is loaded here and not with the package."""
    from agentgram.cli.app import app

    app()
