"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import WRONG_USE, report, show_warnings, usage_message
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli.commands.archive import export, import_
from metatree_agents.cli.commands.ask import ask, files, find
from metatree_agents.cli.commands.build import build
from metatree_agents.cli.commands.context import context
from metatree_agents.cli.commands.doctor import doctor
from metatree_agents.cli.commands.goals import goals_app
from metatree_agents.cli.commands.hosts import install, uninstall
from metatree_agents.cli.commands.mcp import mcp
from metatree_agents.cli.commands.memories import audit, forget, memories, remember
from metatree_agents.cli.commands.plan import plan
from metatree_agents.cli.commands.plugins import plugins
from metatree_agents.cli.commands.questions import answer, questions
from metatree_agents.cli.commands.rules import rules
from metatree_agents.cli.commands.runs import resume, runs, trace
from metatree_agents.cli.commands.schema import schema
from metatree_agents.cli.commands.service.backup import backup, check, restore
from metatree_agents.cli.commands.service.keys import keys_app
from metatree_agents.cli.commands.service.queue import queue_app
from metatree_agents.cli.commands.service.serve import serve
from metatree_agents.cli.commands.service.users import users_app
from metatree_agents.cli.commands.service.worker import worker
from metatree_agents.cli.commands.show import show
from metatree_agents.cli.commands.trust import trust

_Sections = Mapping[str, Mapping[str, tuple[Callable[..., int] | CommandGroup, str]]]

# Typer carries click inside, or depends on it, by its version; this is the base of its usage errors in both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_INTERRUPTED = 130
"""What Typer returns for a command that Ctrl-C ended; the commands themselves return no such code."""

_SERVICE: _Sections = {
    "Run it": {
        "serve": (serve, "the server, with an engine inside (short: `metatree serve`)"),
        "worker": (worker, "one more engine, on this machine or another"),
    },
    "Look after it": {
        "backup": (backup, "write users, topics, answers and memory into one file"),
        "check": (check, "read a backup and compare its checksums"),
        "restore": (restore, "put a backup in the place of a service"),
        "users": (users_app, "who may call it: add, login, list, remove"),
        "keys": (keys_app, "API keys for clients of OpenAI's API: add, list, revoke"),
        "queue": (queue_app, "what is queued, held and failed: status, requeue, release"),
    },
}


class _SectionedGroup(typer.core.TyperGroup):
    """A group whose help lists its commands under headings; in each, groups of commands come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each heading; click writes one for all commands."""
        headings: dict[str, list[Any]] = {}
        for command in self.commands.values():
            headings.setdefault(str(command.rich_help_panel), []).append(command)  # type: ignore[attr-defined]
        width = max(map(len, self.commands))
        for heading, commands in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{one.name:{width}}", one.short_help) for one in commands])


def _group(sections: _Sections, **settings: Any) -> CommandGroup:
    """Return a group of commands with their words in its help."""
    group = CommandGroup(cls=_SectionedGroup, **settings)
    for heading, commands in sections.items():
        for name, (command, words) in commands.items():
            if isinstance(command, CommandGroup):
                group.add_typer(command, name=name, short_help=words, rich_help_panel=heading)
            else:
                group.add(name, short_help=words, rich_help_panel=heading)(command)
    return group


_COMMANDS: _Sections = {
    "Ask": {
        "build": (build, "build the tree of a folder, or bring it up to date"),
        "ask": (ask, "answer questions, with sources"),
        "find": (find, "list the nodes that fit questions best"),
        "files": (files, "list the files that an issue wants edited"),
        "context": (context, "print the lines that an issue is about"),
        "show": (show, "print a node and what lies below it"),
    },
    "Remember": {
        "remember": (remember, "add a memory to the tree"),
        "memories": (memories, "list what the tree was told to remember"),
        "forget": (forget, "take back a memory, or all that somebody said"),
        "audit": (audit, "say where a memory comes from and what it replaced"),
        "export": (export, "write what cannot be built again to one file"),
        "import": (import_, "merge an export into the tree"),
    },
    "Look back, go on": {
        "runs": (runs, "list the runs of a tree"),
        "trace": (trace, "print each decision of a run"),
        "resume": (resume, "go on with a run"),
        "questions": (questions, "list what searches have asked a person"),
        "answer": (answer, "answer such a question"),
    },
    "Plan": {
        "plan": (plan, "find a plan for a problem or a goal"),
        "rules": (rules, "run a program of facts and productions"),
        "goals": (goals_app, "agents that carry goals out durably: start, list, run, …"),
    },
    "Serve": {
        "mcp": (mcp, "serve the tree to other agents over MCP"),
        "serve": (serve, "serve the memory to many users: web page and HTTP"),
        "service": (
            _group(_SERVICE, help="Operate the query service."),
            "worker, users, keys, queue, backup, restore",
        ),
    },
    "Set up": {
        "install": (install, "set up coding agents to use the tree"),
        "uninstall": (uninstall, "take that back"),
        "plugins": (plugins, "list the installed plug-ins"),
        "trust": (trust, "show and accept a tree that somebody else made"),
        "schema": (schema, "print the JSON Schema of what --json prints"),
        "doctor": (doctor, "check the installation and the tree"),
    },
}
app = _group(
    _COMMANDS,
    name="metatree",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"metatree {version('metatree')}")
        raise typer.Exit


@app.callback()
def metatree(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the way in memory: ask the tree of a folder, list the files to edit.

    Exit codes: 0 found, 1 nothing, 2 wrong use, 3 limit, 4 waiting, 5 failed.

    \b
    Example: metatree ask "Where are redirects followed?" --source ~/src/requests
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors become one line on standard error."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in options
    try:
        output.prepare()
        with show_warnings(traceback=debug):
            code = _command_line(arguments)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except _UsageError as error:
        # Without a command, also without one of `goals` or `service`, the message is the whole help, in its lines.
        is_help = type(error).__name__ == "NoArgsIsHelpError" or not arguments
        output.note(str(error) if is_help else f"metatree: {usage_message(error)}")
        return WRONG_USE
    except (Exception, KeyboardInterrupt) as error:
        if debug:  # not left to Python, which writes the names in it as they are, and the terminal obeys them
            output.note("".join(traceback.format_exception(error)).rstrip())
        return report(error)


def _command_line(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    return int(command(args=list(arguments), prog_name="metatree", standalone_mode=False) or 0)
