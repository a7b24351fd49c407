"""The command line, `metatree`: `_main` puts the commands of `commands/` together, each under a heading of the help.

`schemas/` has the JSON that they print, `printing/` what people see, `_output` where both go, `_errors` what becomes of
errors, `_inputs` texts from arguments and files, `_options` what commands share, `_groups` how they are put together.
No other room of the agents imports it, and it may import them all.
"""

from __future__ import annotations

import gc
import os
import sys

from metatree_agents import warn_of_other_package
from metatree_agents.cli._relative_places import drop_relative_places

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process; Ctrl-C is heard from here on, also while the commands are loaded."""
    # numpy starts a thread for each core when it is loaded, which is half of its 100 ms; no product here is that large
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Modules and nodes are many objects and no garbage: looking for it took a tenth of `find`, and of a build.
    gc.set_threshold(100_000, 20, 20)
    if sys.argv[1:2] == ["find"]:
        gc.disable()
    try:
        if (dropped := drop_relative_places()) and sys.stderr is not None:
            print(f"metatree: not used, since it is relative: {', '.join(dropped)}", file=sys.stderr)
        warn_of_other_package()
        from metatree._util.process import absolute_libraries, absolute_path, import_path

        # Libraries look for programs, too: the client of OpenAI runs `uname`. And neither is what lies here imported.
        os.environ.update(absolute_libraries(), PATH=absolute_path())
        sys.path[:] = import_path()

        from metatree_agents.cli._main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        if "--debug" in sys.argv[1:]:
            raise
        if sys.stderr is not None:
            print("metatree: cancelled before anything was done: run it again", file=sys.stderr)
        code = 5
    sys.exit(code)
