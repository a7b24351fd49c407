"""The command line, `metatree`: `_main` puts the commands of `commands/` together and turns errors into one line.

`schemas/` has the JSON that they print, `_output` where they print, `_options` what they share.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process; Ctrl-C is heard from here on, also while the commands are loaded."""
    try:
        from metatree_agents.cli._main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        if "--debug" in sys.argv[1:]:
            raise
        if sys.stderr is not None:
            print("metatree: cancelled before anything was done: run it again", file=sys.stderr)
        code = 5
    sys.exit(code)
