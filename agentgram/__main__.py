"""``python -m agentgram``."""

from __future__ import annotations

from agentgram.cli import main

if __name__ == "__main__":
    main()
