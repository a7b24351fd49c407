"""The options that several commands share, with their help texts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree._util.links import link_astray, real
from metatree._util.named_file import typed_path
from metatree._util.numbers import whole_number
from metatree._util.secret_files import is_link_to_secret
from metatree.errors import UserError

if TYPE_CHECKING:
    from metatree import Limits


def given(text: str) -> str:
    """Return the value of an option or argument, unless a variable of the shell left it empty."""
    if not text.strip():
        raise typer.BadParameter("it is empty: give a value, or leave it out")
    return text


def path(text: str) -> Path:
    """Return the path that an option or argument names; an empty one is not the current folder.

    Raises:
        UserError: a link leads out of its folder on the way, or to what holds secrets: whoever made the folder may
            have put it there. Or it begins with `~`, and is here and in the home.
    """
    named = Path(given(text))
    for way in (named, Path(os.path.expanduser(text))):  # noqa: PTH111  # raises nothing where there is no such user
        if link := link_astray(way):
            what = "folder" if os.path.isdir(link) else "file"  # noqa: PTH112  # nor where nobody may look
            raise UserError(
                f"{str(link)!r} is a link to a {what} outside of its folder: name that {what} itself"
            )
        if is_link_to_secret(way):
            raise UserError(f"{str(way)!r} is a link to {str(real(way))!r}: name that itself")
    return typed_path(text)


def file_or_address(text: str) -> str:
    """Return the file or the address that an option names as it was given. Raises as `path` for a file."""
    return given(text) if "://" in text else str(path(text))


def count_or_auto(text: str | int) -> int:
    """Return a number from 1 on; 0 for `auto`."""
    if text == "auto":
        return 0
    number = whole_number(str(text))
    if not number:
        raise typer.BadParameter(f"{str(text)[:40]!r} is neither a number from 1 on nor `auto`")
    return number


def option(name: str, metavar: str | None, help: str, *, parser: Callable[[str], Any] = given) -> Any:  # noqa: A002
    """Declare an option whose value may not be empty."""
    return typer.Option(name, parser=parser, metavar=metavar, help=help)


def argument(metavar: str, help: str | None = None, *, parser: Callable[[str], Any] = given) -> Any:  # noqa: A002
    """Declare an argument that may not be empty."""
    return typer.Argument(parser=parser, metavar=metavar, help=help)


Source = Annotated[
    list[str] | None,
    option(
        "--source",
        "SOURCE",
        "Folder, file or address to search, several times for several; the current folder by default.",
    ),
]
TreePath = Annotated[
    Path | None,
    option(
        "--tree",
        "PATH",
        "Where the tree lives; by default .metatree in the source, if that is one folder, else in this one.",
        parser=path,
    ),
]
Start = Annotated[
    str | None, option("--start", "NODE", "Node to start from: its own subtree first, then its surroundings.")
]
Router = Annotated[
    str | None,
    option(
        "--router",
        "NAME",
        "Router that chooses the way: `embedded`, `human`, `openai/MODEL`, `ollama/MODEL`, `anthropic/MODEL`,"
        " `gemini/MODEL`, `openrouter/MODEL`, or a decision model: `systemone/MODEL`, `decisions/MODEL`,"
        " `logits/MODEL`, `@URL` behind it for its server; by default METATREE_ROUTER, the model in METATREE_MODEL,"
        " or `embedded`.",
    ),
]
Count = Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many to list.")]
Kinds = Annotated[
    list[str] | None,
    option(
        "--kind",
        "KIND",
        "List nodes of this kind alone: file, definition, section, …; repeatable.",
    ),
]
Context = Annotated[
    str,
    typer.Option("--context", metavar="TEXT", help="What the search should know besides the question."),
]
RunId = Annotated[str | None, option("--run", "RUN", "Name of this run in the journal; made up by default.")]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a search may cost."""

    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls", min=1, metavar="N", help="At most N calls of the router, and N of a model."
        ),
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", min=0.001, metavar="S", help="At most S seconds of work."),
    ] = None

    def limits(self) -> Limits | None:
        """Return the limits that the options ask for; None when they ask for none."""
        from metatree import Limits

        bounds: dict[str, Any] = {}
        if self.max_calls is not None:
            bounds |= {"router_calls": self.max_calls, "model_calls": self.max_calls}
        if self.max_seconds is not None:
            bounds["seconds"] = self.max_seconds
        return Limits(**bounds) if bounds else None


NoRefresh = Annotated[
    bool,
    typer.Option("--no-refresh", help="Search the tree as it is, even if its source has changed."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; docs/json.md has the schema.")]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Say errors and warnings alone on standard error.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback when something fails.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also print the path that the search took.")]
Allow = Annotated[
    list[str] | None,
    option(
        "--allow",
        "TOOL",
        "Let this tool change something outside of the memory, in this run: its id, the last part of it or its"
        " title; several times for several.",
    ),
]
Web = Annotated[
    str | None,
    option(
        "--web",
        "URL",
        "Look on the web for what the tree does not answer: address of a SearXNG instance that is asked for pages,"
        " which become nodes; METATREE_SEARCH_URL names one too.",
    ),
]
