"""The options that several commands share, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def given(text: str) -> str:
    """Return the value of an option or argument, unless a variable of the shell left it empty."""
    if not text.strip():
        raise typer.BadParameter("it is empty: give a value, or leave it out")
    return text


def path(text: str) -> Path:
    """Return the path that an option or argument names; an empty one is not the current folder."""
    return Path(given(text))


Source = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        parser=given,
        metavar="SOURCE",
        help="Folder, file or address to search, several times for several; the current folder by default.",
    ),
]
TreePath = Annotated[
    Path | None,
    typer.Option(
        "--tree",
        parser=path,
        metavar="PATH",
        help="Where the tree lives; by default .metatree in the source, if that is one folder, else in this one.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        parser=given,
        metavar="NODE",
        help="Node to start from: its own subtree first, then its surroundings.",
    ),
]
Router = Annotated[
    str | None,
    typer.Option(
        "--router",
        parser=given,
        metavar="NAME",
        help="Router that chooses the way: `embedded`, `openai/MODEL`, `human`; by default METATREE_ROUTER,"
        " the model in METATREE_MODEL, or `embedded`.",
    ),
]
Count = Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many to list.")]
Context = Annotated[
    str,
    typer.Option("--context", metavar="TEXT", help="What the search should know besides the question."),
]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run", parser=given, metavar="RUN", help="Name of this run in the journal; made up by default."
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", min=1, metavar="N", help="At most N calls of the router, and N of a model."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", min=0.001, metavar="S", help="At most S seconds of work."),
]
NoRefresh = Annotated[
    bool,
    typer.Option("--no-refresh", help="Search the tree as it is, even if its source has changed."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; docs/json.md has the schema.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also print the path that the search took.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback when something fails.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        parser=given,
        metavar="TOOL",
        help="Let this tool change something outside of the memory, in this run: its id, the last part of it or its"
        " title; several times for several.",
    ),
]
Web = Annotated[
    str | None,
    typer.Option(
        "--web",
        parser=given,
        metavar="URL",
        help="Look on the web for what the tree does not answer: address of a SearXNG instance that is asked for pages,"
        " which become nodes; METATREE_SEARCH_URL names one too.",
    ),
]
