"""`metatree trust`: what a tree that somebody else made would be allowed, and accepting it."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UserError
from metatree.sources import FILES, public_location
from metatree_agents.cli import options, screen
from metatree_agents.cli.exits import FOUND, NOTHING, WRONG_USE
from metatree_agents.cli.shapes import StoreShape, TrustShape
from metatree_agents.cli.trees import FOLDER

if TYPE_CHECKING:
    from metatree.acceptance import Survey


def trust(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            parser=options.path,
            help="A folder, its .metatree, or a tree in one file; the current folder by default.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show what is in it.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back that it is trusted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept it without asking.")] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Show what a tree that somebody else made would be allowed, and accept it.

    A tree may name commands to start, addresses and files elsewhere, hold permissions for tools, memories in the names
    of people, and the users of a query service. One that came with a folder is not used for any of that until it is
    accepted here. Yours are marked when they are made, with a key in METATREE_CONFIG_DIR; the trees below the folders
    in METATREE_TRUST need no mark.

    \b
    Example: metatree trust ~/src/shop --show
    """
    from metatree.acceptance import accept, stores_in, survey
    from metatree.acceptance import revoke as take_back

    if revoke and (show or yes):
        raise UserError("--revoke goes with neither --show nor --yes")
    found = _place(place or Path())
    surveys = [survey(file) for file in stores_in(found)]
    if revoke:
        gone = [each for each in surveys if take_back(each.file)]
        return _told(
            found, surveys, json, f"{screen.counted(len(gone), 'store')} not trusted any more", bool(gone)
        )
    open_ = [each for each in surveys if not each.trusted or each.offered]
    if not open_:
        return _told(found, surveys, json, "trusted: you made or accepted all of it", True)
    if show:
        return _told(found, surveys, json, "", True)
    if not json or not yes:
        for line in _lines(surveys):
            screen.note(line)
    if not yes and not _agreed(found):
        screen.note("nothing was accepted")
        return WRONG_USE
    for each in open_:
        if not each.trusted:
            accept(each.file)
    _build_offered(found, surveys)
    return _told(found, [survey(file) for file in stores_in(found)], json, "accepted", True)


def _place(given: Path) -> Path:
    path = given.expanduser()
    if (
        path.is_dir()
        and path.name != FOLDER
        and not (path / "index.db").exists()
        and (path / FOLDER).is_dir()
    ):
        return path / FOLDER
    if not path.exists():
        raise UserError(f"there is nothing at {str(path)!r}")
    return path


def _agreed(place: Path) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError(
            f"nobody is at a terminal to ask: accept it with `metatree trust {place} --yes`, or only --show it"
        )
    print(
        f"trust {screen.visible(str(place))} with all of that? [y]es, [N]o: ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _build_offered(place: Path, surveys: list[Survey]) -> None:
    """Build the tree again from all the sources that were accepted."""
    from metatree_memory_tools import build_tree

    from metatree.acceptance import drop_offer
    from metatree.sources import source_from_record

    for each in surveys:
        if each.offered:
            build_tree(*(source_from_record(record, place) for record in each.sources), out=place).close()
            drop_offer(each.file)


def _told(place: Path, surveys: list[Survey], json: bool, word: str, good: bool) -> int:
    if json:
        screen.write_json(TrustShape(tree=str(place), stores=[_shape(each) for each in surveys]))
    else:
        screen.write([*_lines(surveys), *([word] if word else [])])
    return FOUND if good else NOTHING


def _shape(survey: Survey) -> StoreShape:
    return StoreShape(
        path=str(survey.file),
        trusted=survey.trusted,
        sources=[_source(record) for record in survey.sources],
        permissions=survey.permissions,
        memories=survey.memories,
        authors=survey.authors,
        runs=survey.runs,
        users=[f"{name} ({role})" for name, role in survey.users],
    )


def _lines(surveys: list[Survey]) -> Iterator[str]:
    for survey in surveys:
        state = "yours" if survey.trusted else "not yours"
        yield f"{screen.visible(str(survey.file))}: {state}"
        for record in survey.sources:
            yield f"  {screen.visible(_source(record))}"
        if survey.memories:
            named = screen.visible(", ".join(survey.authors)) or "nobody"
            yield f"  holds {screen.counted(survey.memories, 'remembered text')} of {named}"
        for tool in survey.permissions:
            yield f"  lets {screen.visible(tool)} change things without asking"
        if survey.runs:
            yield f"  holds {screen.counted(survey.runs, 'run')} that could be resumed"
        for name, role in survey.users:
            yield f"  lets {screen.visible(name)} log in, as {screen.visible(role)}"


def _source(record: dict[str, Any]) -> str:
    """Say what a source of a tree would do."""
    kind = str(record.get("type"))
    where = public_location(str(record.get("place", record.get("location"))))
    options_ = record.get("options")
    with_ = f" with {json_text.dumps(options_, ensure_ascii=False)}" if options_ else ""
    if kind in FILES:
        return f"reads {where}{with_}"
    if kind == "mcp" and "://" not in where:
        return f"starts {where}{with_}"
    return f"reads {kind}:{where}{with_}"
