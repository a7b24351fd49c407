"""Write what is made from the code (docs/cli.md, docs/json.md, server.json, the skill, the plug-in), or check it.

usage: python docs/generate.py [--check]
"""

from __future__ import annotations

import inspect
import json
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeGuard, get_args, get_origin

import typer
from metatree_agents.cli import _errors as exit_codes
from metatree_agents.cli._main import app
from metatree_agents.cli.schemas import search
from metatree_agents.cli.schemas.registry import OUTPUTS, models_of
from metatree_agents.tools.instructions import (
    SKILL_FOLDER,
    marketplace,
    plugin,
    registry_entry,
    skill,
)
from pydantic import BaseModel

from metatree.version import RELEASE

HERE = Path(__file__).parent
NAMES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
MODELS: tuple[type[BaseModel], ...] = (
    *dict.fromkeys(model for command in OUTPUTS for model in models_of(command)),
    search.UsageOutput,
)


def cli_page() -> str:
    """Return the page on the command line: every command with its arguments and options."""
    group: Any = typer.main.get_command(app())
    known: dict[Any, str] = {}
    return "\n".join(
        [
            "# Command line",
            "",
            "<!-- Written by docs/generate.py (`make docs`): change the code, not this page. -->",
            "",
            "Results go to standard output; progress and messages go to standard error, colours and bars only to a",
            "terminal (and not when `NO_COLOR` is set). A text argument may be `-` for standard input or `@FILE` for a",
            "file; `@@` begins a text whose first character is `@`.",
            "`metatree --install-completion` sets up completion for your shell.",
            "",
            "| exit code | meaning |",
            "|---|---|",
            f"| {exit_codes.FOUND} | found; when only some of several questions are answered, the others are listed as"
            " still open (`open_questions` in JSON) |",
            f"| {exit_codes.NOTHING} | nothing found; `ask` prints what comes closest (`closest` in JSON) |",
            f"| {exit_codes.WRONG_USE} | wrong use: one line on standard error says what to do |",
            f"| {exit_codes.LIMIT} | a limit was reached; what was found so far is printed, `metatree resume` goes on"
            " |",
            f"| {exit_codes.WAITING} | waiting for a person; `metatree answer` answers, and the run goes on |",
            f"| {exit_codes.FAILED} | failed or cancelled (Ctrl-C); what was found and paid for is kept |",
            "",
            "JSON is printed when a search was made, whatever its end; with exit code 2, and when something failed,",
            "standard output is empty. Its shapes are in [json.md](json.md).",
            "",
            *(line for name, command in group.commands.items() for line in _command(name, command, known)),
        ]
    )


def _command(name: str, command: Any, known: dict[Any, str]) -> Iterator[str]:
    if hasattr(command, "commands"):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one, known)
        return
    function = inspect.unwrap(command.callback)
    if function in known:
        yield from (f"## metatree {name}", "", f"The same as `metatree {known[function]}`.", "")
        return
    known[function] = name
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    summary, _, rest = inspect.cleandoc(command.help).partition("\n\n")
    details, *examples = rest.replace("\b\n", "").split("Example: ")
    usage = " ".join(_usage(argument) for argument in arguments)
    yield from (f"## metatree {name}", "", " ".join(summary.split()), "")
    if details.strip():
        yield from (details.strip(), "")
    yield from (
        "```sh",
        *(example.strip() for example in examples),
        "```",
        "",
        f"Usage: `metatree {name} {usage}".rstrip() + " [OPTIONS]`",
        "",
    )
    yield from ("| | |", "|---|---|")
    for parameter in (*arguments, *options):
        shown = parameter.metavar if parameter in arguments else _option(parameter)
        yield f"| `{shown}` | {' '.join((parameter.help or '').split())}{_default(parameter)} |"
    yield ""


def _usage(argument: Any) -> str:
    shown = str(argument.metavar) + ("..." if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _option(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _default(parameter: Any) -> str:
    value = parameter.default
    shown = isinstance(value, int | float) and not isinstance(value, bool)
    return f" Default: {value}." if shown else ""


def json_page() -> str:
    """Return the page on what `--json` prints: every model with its fields."""
    lines = [
        "# JSON",
        "",
        "<!-- Written by docs/generate.py (`make docs`): change the code, not this page. -->",
        "",
        "Every command prints one JSON object with `--json`, in UTF-8. Fields may be added; those here stay.",
        "`metatree schema COMMAND` prints the JSON Schema.",
        "",
    ]
    for model in MODELS:
        summary, _, details = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
        title = summary.partition("; ")[0].rstrip(".")
        lines += [f"## {title}", ""]
        notes = [
            *_notes(summary, title),
            *([" ".join(details.split())] if details else []),
            *_nested_notes(model),
        ]
        lines += ["```", *_object(model, 0), "```", "", *[f"- {note}" for note in notes]]
        lines += [""] if notes else []
    return "\n".join(lines)


def _notes(summary: str, title: str) -> Iterator[str]:
    rest = summary.removeprefix(title).removeprefix("; ").strip(". ")
    if rest:
        yield rest + "."


def _nested_notes(model: type[BaseModel], seen: frozenset[type] = frozenset()) -> Iterator[str]:
    for field in model.model_fields.values():
        for part in (field.annotation, *get_args(field.annotation)):
            if _is_model(part) and part not in MODELS and part not in seen:
                yield " ".join(inspect.cleandoc(part.__doc__ or "").split())
                yield from _nested_notes(part, seen | {part})


def _is_model(hint: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _object(model: type[BaseModel], depth: int) -> list[str]:
    margin = "  " * (depth + 1)
    lines = ["{"]
    for name, field in model.model_fields.items():
        first, *more = _type(field.annotation, depth + 1)
        lines += [f'{margin}"{field.serialization_alias or name}": {first}', *more]
        lines[-1] += " (not always there)" * (not field.is_required()) + ","
    lines[-1] = lines[-1].removesuffix(",")
    return [*lines, "  " * depth + "}"]


def _type(hint: Any, depth: int) -> list[str]:
    if hint in NAMES:
        return [NAMES[hint]]
    if hint is Any:
        return ["any"]
    if hint in MODELS:
        return [f"{hint.__name__.removesuffix('Output').lower()} (see there)"]
    if _is_model(hint):
        return _object(hint, depth)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(args[0], depth)
    if origin in (types.UnionType, typing.Union):
        first, *rest = [_type(arg, depth) for arg in args]
        return [*first[:-1], first[-1] + "".join(f" or {other[0]}" for other in rest)]
    if origin is list:
        inner = _type(args[0], depth)
        return [f"[{inner[0]}", *inner[1:-1], f"{inner[-1]}, …]"] if len(inner) > 1 else [f"[{inner[0]}, …]"]
    if origin is dict:
        return [f"{{string: {_type(args[1], depth)[0]}, …}}"]
    raise TypeError(f"no words for the type {hint!r}")


def distribution() -> str:
    """Return what the project is called on the package index."""
    name: str = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    return name


def server_entry() -> str:
    """Return `server.json`, by which the registry of MCP servers knows this one."""
    return json.dumps(registry_entry(distribution(), RELEASE), indent=2)


def main() -> int:
    """Write the pages, or with --check return 1 when one differs from what the code says."""
    check = "--check" in sys.argv[1:]
    stale = []
    written = (
        ("docs/cli.md", cli_page()),
        ("docs/json.md", json_page()),
        ("server.json", server_entry()),
        (".claude-plugin/plugin.json", json.dumps(plugin(distribution(), RELEASE), indent=2)),
        (".claude-plugin/marketplace.json", json.dumps(marketplace(), indent=2)),
        (f"{SKILL_FOLDER}/metatree/SKILL.md", skill()),
    )
    for name, text in written:
        path = HERE.parent / name
        text = text.rstrip("\n") + "\n"
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"{', '.join(stale)} differs from the code: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
