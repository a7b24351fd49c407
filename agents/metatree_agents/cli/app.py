"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Annotated

import typer

from metatree.errors import MetatreeError, RunExists, UserError
from metatree.storage_errors import full
from metatree_agents.cli import screen
from metatree_agents.cli.administration import service_app
from metatree_agents.cli.agents import agents_app
from metatree_agents.cli.api_keys import key, keys, revoke
from metatree_agents.cli.archive import export, import_
from metatree_agents.cli.ask import ask, files, find
from metatree_agents.cli.backups import backup, restore
from metatree_agents.cli.build import build
from metatree_agents.cli.doctor import doctor
from metatree_agents.cli.exits import FAILED, WRONG_USE, Cancelled
from metatree_agents.cli.memories import forget, memories, remember
from metatree_agents.cli.plan import plan
from metatree_agents.cli.plugged import plugins
from metatree_agents.cli.questions import answer, questions
from metatree_agents.cli.rules import rules
from metatree_agents.cli.runs import resume, runs, trace
from metatree_agents.cli.serve_mcp import mcp
from metatree_agents.cli.serving import serve
from metatree_agents.cli.show import show
from metatree_agents.cli.trees import denied
from metatree_agents.cli.trust import trust
from metatree_agents.cli.users import users_app
from metatree_agents.cli.warnings import warnings_shown
from metatree_agents.cli.working import worker

# Typer carries click inside, or depends on it, by its version; this is the base of its usage errors in both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_INTERRUPTED = 130
"""What Typer returns for a command that Ctrl-C ended; the commands themselves return no such code."""

# rich_markup_mode=None: help is printed as plain text, which needs no 50 ms to load rich.
app = typer.Typer(
    name="metatree",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    *(build, ask, find, files, show, trace, runs, resume, questions, answer),
    *(remember, memories, forget, export, import_),
    *(rules, plan, mcp, serve, worker, backup, restore, plugins, trust, doctor),
)
for _command in _COMMANDS:
    app.command(_command.__name__.rstrip("_"))(_command)
app.add_typer(agents_app, name="agents")
app.add_typer(users_app)
app.add_typer(service_app)
for _of_users in (key, keys, revoke):
    users_app.command(_of_users.__name__)(_of_users)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"metatree {version('metatree')}")
        raise typer.Exit


@app.callback()
def metatree(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the way in memory: build the tree of a folder, ask it questions, list the files to edit.

    Exit codes: 0 found, 1 nothing found, 2 wrong use, 3 limit reached, 4 waiting for a person, 5 failed or cancelled.

    \b
    Example: metatree ask "Where are redirects followed?" --source ~/src/requests
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors become one line on standard error."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in options
    try:
        screen.prepare()
        with warnings_shown(traceback=debug):
            code = _command_line(arguments)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except _UsageError as error:
        # Without a command, also without one of `agents` or `users`, the message is the whole help, in its lines.
        is_help = type(error).__name__ == "NoArgsIsHelpError" or not arguments
        screen.note(str(error) if is_help else f"metatree: {_usage_message(error)}")
        return WRONG_USE
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        return _failed(error)


def _command_line(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    return int(command(args=list(arguments), prog_name="metatree", standalone_mode=False) or 0)


def _failed(error: BaseException) -> int:
    match error:
        case KeyboardInterrupt():
            screen.note("metatree: cancelled; what was done before is kept: run it again to go on")
            return FAILED
        case RunExists():
            run = screen.visible(error.run_id)
            screen.note(
                f"metatree: run {run!r} exists: go on with `metatree resume {run}`, or give --run another name"
            )
            return WRONG_USE
        case UserError():
            screen.note(f"metatree: {screen.visible(str(error))}")
            return WRONG_USE
        case Cancelled() | MetatreeError():
            screen.note(f"metatree: {screen.visible(str(error))}")
            return FAILED
        case PermissionError():
            screen.note(f"metatree: {screen.visible(denied(error))}")
            return WRONG_USE
        case OSError():
            screen.drop_output()
            if error.errno in (ENOSPC, EDQUOT) and error.filename:
                screen.note(f"metatree: {screen.visible(str(full(Path(error.filename), error)))}")
                return FAILED
            what = error.strerror or str(error)
            where = (
                f"{error.filename}: " if error.filename else "cannot write: " if error.errno == ENOSPC else ""
            )
            screen.note(f"metatree: {screen.visible(where + what)}; mend it there and run the command again")
            return FAILED
        case _:
            what = f"{type(error).__name__}: {error}"
            screen.note(
                f"metatree: failed: {screen.visible(what)}; run it again with --debug for the traceback"
            )
            return FAILED


def _usage_message(error: Exception) -> str:
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "metatree")
    return f"{' '.join(message.split()).rstrip('.')}; `{command} --help` says more"
