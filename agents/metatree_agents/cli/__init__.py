"""The command line, `metatree`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process; Ctrl-C is heard from here on, also while the commands are loaded."""
    try:
        from metatree_agents.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        if "--debug" in sys.argv[1:]:
            raise
        if sys.stderr is not None:
            print("metatree: cancelled before anything was done: run it again", file=sys.stderr)
        code = 5
    sys.exit(code)
