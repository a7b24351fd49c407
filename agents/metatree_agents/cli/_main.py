"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Annotated

import typer

from metatree.errors import MetatreeError, RunExists, UserError
from metatree.storage.errors import full
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FAILED, WRONG_USE, Cancelled
from metatree_agents.cli._trees import denied
from metatree_agents.cli._warnings import warnings_shown
from metatree_agents.cli.commands.agents import agents_app
from metatree_agents.cli.commands.archive import export, import_
from metatree_agents.cli.commands.ask import ask, files, find
from metatree_agents.cli.commands.backup import backup, restore
from metatree_agents.cli.commands.build import build
from metatree_agents.cli.commands.doctor import doctor
from metatree_agents.cli.commands.keys import key, keys, revoke
from metatree_agents.cli.commands.mcp import mcp
from metatree_agents.cli.commands.memories import forget, memories, remember
from metatree_agents.cli.commands.plan import plan
from metatree_agents.cli.commands.plugins import plugins
from metatree_agents.cli.commands.questions import answer, questions
from metatree_agents.cli.commands.rules import rules
from metatree_agents.cli.commands.runs import resume, runs, trace
from metatree_agents.cli.commands.serve import serve
from metatree_agents.cli.commands.service import service_app
from metatree_agents.cli.commands.show import show
from metatree_agents.cli.commands.trust import trust
from metatree_agents.cli.commands.users import users_app
from metatree_agents.cli.commands.worker import worker

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
        output.prepare()
        with warnings_shown(traceback=debug):
            code = _command_line(arguments)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except _UsageError as error:
        # Without a command, also without one of `agents` or `users`, the message is the whole help, in its lines.
        is_help = type(error).__name__ == "NoArgsIsHelpError" or not arguments
        output.note(str(error) if is_help else f"metatree: {_usage_message(error)}")
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
            output.note("metatree: cancelled; what was done before is kept: run it again to go on")
            return FAILED
        case RunExists():
            run = output.visible(error.run_id)
            output.note(
                f"metatree: run {run!r} exists: go on with `metatree resume {run}`, or give --run another name"
            )
            return WRONG_USE
        case UserError():
            output.note(f"metatree: {output.visible(str(error))}")
            return WRONG_USE
        case Cancelled() | MetatreeError():
            output.note(f"metatree: {output.visible(str(error))}")
            return FAILED
        case PermissionError():
            output.note(f"metatree: {output.visible(denied(error))}")
            return WRONG_USE
        case OSError():
            output.drop_output()
            if error.errno in (ENOSPC, EDQUOT) and error.filename:
                output.note(f"metatree: {output.visible(str(full(Path(error.filename), error)))}")
                return FAILED
            what = error.strerror or str(error)
            where = (
                f"{error.filename}: " if error.filename else "cannot write: " if error.errno == ENOSPC else ""
            )
            output.note(f"metatree: {output.visible(where + what)}; mend it there and run the command again")
            return FAILED
        case _:
            what = f"{type(error).__name__}: {error}"
            output.note(
                f"metatree: failed: {output.visible(what)}; run it again with --debug for the traceback"
            )
            return FAILED


def _usage_message(error: Exception) -> str:
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "metatree")
    return f"{' '.join(message.split()).rstrip('.')}; `{command} --help` says more"
