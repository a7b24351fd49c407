"""Groups of commands, whose shared options come as one parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar

import typer

from metatree_agents.cli import _output as output
from metatree_agents.cli._options import Debug, Quiet
from metatree_agents.cli._values import PlainCommand

Command = TypeVar("Command", bound=Callable[..., int])

_DEBUG = inspect.Parameter(
    "debug",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Debug,
)
"""An option of every command; `run` looks for it among the arguments, so that few commands take it."""
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Quiet,
)
"""Another one, which no command takes: what it changes is what `_output` and the bars do."""


class CommandGroup(typer.Typer):
    """Commands under one name."""

    def __init__(self, **settings: Any) -> None:
        # rich_markup_mode=None: help is plain text. Lost: help by rich, which costs 50 ms at each start; it is loaded
        # only where a bar or a tree is drawn on a terminal.
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **settings)

    def add(self, name: str, **settings: Any) -> Callable[[Command], Command]:
        """Add the function that follows as a command."""

        def added(function: Command) -> Command:
            self.command(name, cls=PlainCommand, **settings)(_flat(function))
            return function

        return added


def _flat(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command as Typer reads one: a parameter whose type is a dataclass becomes an option for each field.

    Typer has no parameter that stands for several options. Lost: pairs such as `source, tree`, declared again by every
    command and handed on by each function that it calls.
    """
    declared = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: one.annotation for name, one in declared.items() if is_dataclass(one.annotation)
    }
    options: dict[str, inspect.Parameter] = {}
    for name, one in declared.items():
        group = groups.get(name)
        options |= {name: one} if group is None else inspect.signature(group, eval_str=True).parameters
    options[_QUIET.name] = _QUIET
    options.setdefault(_DEBUG.name, _DEBUG)

    @wraps(command)
    def called(**values: Any) -> int:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        if _DEBUG.name not in declared:
            values.pop(_DEBUG.name)
        output.be_quiet(values.pop(_QUIET.name))
        return command(**values)

    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options.values()]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called
