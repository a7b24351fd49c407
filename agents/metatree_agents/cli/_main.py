"""The command line: its commands, and what becomes of their errors."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from metatree._util.named_file import refuse_name
from metatree.version import RELEASE
from metatree_agents.cli import _output as output
from metatree_agents.cli._config import defaults
from metatree_agents.cli._errors import WRONG_USE, note_lines, report, show_warnings, usage_message
from metatree_agents.cli._groups import CommandGroup
from metatree_agents.cli._values import PlainValues

_Sections = Mapping[str, Mapping[str, tuple[str, str]]]
"""Heading -> name of a command -> where it is, as MODULE:NAME below `commands`, and its words in the help.

A command is loaded when it is run: all of them together take longer than most searches.
"""

# Typer carries click inside, or depends on it, by its version; this is the base of its usage errors in both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_INTERRUPTED = 130
"""What Typer returns for a command that Ctrl-C ended; the commands themselves return no such code."""

_SERVICE: _Sections = {
    "Run it": {
        "serve": ("service.serve:serve", "the server, with an engine inside (short: `metatree serve`)"),
        "worker": ("service.worker:worker", "one more engine, on this machine or another"),
    },
    "Look after it": {
        "backup": ("service.backup:backup", "write users, topics, answers and memory into one file"),
        "check": ("service.check:check", "look whether all is there before a start, or read a backup"),
        "restore": ("service.backup:restore", "put a backup in the place of a service"),
        "users": ("service.users:users_app", "who may call it: add, login, list, remove"),
        "keys": ("service.keys:keys_app", "API keys for clients of OpenAI's API: add, list, revoke"),
        "trees": ("service.trees:trees_app", "several trees: who may ask which: list, allow, deny, groups"),
        "queue": ("service.queue:queue_app", "what is queued, held and failed: status, requeue, release"),
    },
}


class _SectionedGroup(PlainValues, typer.core.TyperGroup):
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


def _group(sections: _Sections, only: str | None = None, **settings: Any) -> CommandGroup:
    """Return a group of commands with their words in its help.

    Args:
        only: the one command that is wanted; None for all.
    """
    group = CommandGroup(cls=_SectionedGroup, **settings)
    for heading, commands in sections.items():
        for name, (place, words) in commands.items():
            if only not in (None, name):
                continue
            command = _group(_SERVICE, help="Operate the query service.") if not place else _loaded(place)
            if isinstance(command, CommandGroup):
                group.add_typer(command, name=name, short_help=words, rich_help_panel=heading)
            else:
                group.add(name, short_help=words, rich_help_panel=heading)(command)
    return group


def _loaded(place: str) -> Callable[..., int] | CommandGroup:
    module, _, name = place.partition(":")
    command: Callable[..., int] | CommandGroup = getattr(
        import_module(f"metatree_agents.cli.commands.{module}"), name
    )
    return command


_COMMANDS: _Sections = {
    "Ask": {
        "build": ("build:build", "build the tree of a folder, or bring it up to date"),
        "ask": ("ask:ask", "answer questions, with sources"),
        "find": ("ask:find", "list the nodes that fit questions best"),
        "files": ("ask:files", "list the files that an issue wants edited"),
        "context": ("context:context", "print the lines that an issue is about"),
        "show": ("show:show", "print a node and what lies below it"),
    },
    "Remember": {
        "remember": ("memories:remember", "add a memory to the tree"),
        "memories": ("memories:memories", "list what the tree was told to remember"),
        "describe": ("describe:describe", "have a model write what menus say of the nodes"),
        "forget": ("memories:forget", "take back a memory, or all that somebody said"),
        "audit": ("memories:audit", "say where a memory comes from and what it replaced"),
        "export": ("archive:export", "write what cannot be built again to one file"),
        "import": ("archive:import_", "merge an export into the tree"),
    },
    "Look back, go on": {
        "runs": ("runs:runs", "list the runs of a tree"),
        "trace": ("runs:trace", "print each decision of a run"),
        "resume": ("runs:resume", "go on with a run"),
        "questions": ("questions:questions", "list what searches have asked a person"),
        "answer": ("questions:answer", "answer such a question"),
    },
    "Plan": {
        "plan": ("plan:plan", "find a plan for a problem or a goal"),
        "rules": ("rules:rules", "run a program of facts and productions"),
        "goals": ("goals:goals_app", "agents that carry goals out durably: start, list, run, …"),
    },
    "Serve": {
        "mcp": ("mcp:mcp", "serve the tree to other agents over MCP"),
        "gateway": ("gateway:gateway", "serve the tools of many MCP servers as three"),
        "serve": ("service.serve:serve", "serve the memory to many users: web page and HTTP"),
        "service": ("", "worker, users, keys, queue, backup, restore"),
    },
    "Set up": {
        "install": ("hosts:install", "set up coding agents to use the tree"),
        "uninstall": ("hosts:uninstall", "take that back"),
        "plugins": ("plugins:plugins", "list the installed plug-ins"),
        "new-plugin": ("new_plugin:new_plugin", "write a package with a plug-in and its test"),
        "trust": ("trust:trust", "show and accept a tree that somebody else made"),
        "schema": ("schema:schema", "print the JSON Schema of what --json prints"),
        "doctor": ("doctor:doctor", "check the installation and the tree"),
        "cache": ("cache:cache", "say what is kept that can be made again, and clear it"),
    },
}


def app(only: str | None = None) -> CommandGroup:
    """Return the commands, or one of them alone: the others need not be loaded to run it."""
    group = _group(
        _COMMANDS,
        only,
        name="metatree",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.callback()(metatree)
    return group


def _print_version(requested: bool) -> None:
    if requested:
        print(f"metatree {RELEASE}")
        raise typer.Exit


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
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    options = arguments[: arguments.index("--") + 1] if "--" in arguments else arguments
    debug = "--debug" in options
    try:
        output.prepare()
        with show_warnings(traceback=debug):
            _refuse_names_of_files(options)
            code = _command_line(arguments)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except _UsageError as error:
        # Without a command, also without one of `goals` or `service`, the message is the whole help, in its lines.
        is_help = type(error).__name__ == "NoArgsIsHelpError" or not arguments
        told = usage_message(error)
        if not is_help and " " in arguments[0] and not arguments[0].startswith("-"):
            told = (
                f"{arguments[0]!r} is no command: to ask it, write metatree ask {shlex.quote(arguments[0])}"
            )
        output.note(str(error) if is_help else f"metatree: {told}")
        return WRONG_USE
    except (Exception, KeyboardInterrupt) as error:
        if debug:  # not left to Python, which writes the names in it as they are, and the terminal obeys them
            note_lines("".join(traceback.format_exception(error)))
        return report(error)


def _refuse_names_of_files(options: Sequence[str]) -> None:
    """Refuse options that are names of files here: `metatree build *` would take them from whoever named the files."""
    for option in options:
        if option.startswith("-") and option != "-":
            refuse_name(option, "an option")


def _command_line(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else ""
    only = name if any(name in commands for commands in _COMMANDS.values()) else None
    command = typer.main.get_command(app(only))
    settings = _settings(only, command) if only else {}
    return int(
        command(args=list(arguments), prog_name="metatree", standalone_mode=False, default_map=settings) or 0
    )


def _settings(name: str, group: Any) -> dict[str, dict[str, Any]]:
    """Return the defaults of options that files of settings say; what this command would have of others is told."""
    values, refused = defaults(Path())
    has = {parameter.name for parameter in group.commands[name].params}
    ours = [
        setting
        for setting in refused
        if setting.rpartition(".")[0] in ("", name)
        and setting.rpartition(".")[2].replace("-", "_") in has
        and name != "trust"
    ]
    if ours:
        output.note(
            f"metatree: warning: the settings of this folder set {', '.join(ours)}: not used until you accept them"
            " with `metatree trust`"
        )
    return values
