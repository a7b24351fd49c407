"""`metatree trust`: what a tree that somebody else made would be allowed, and accepting it."""

from __future__ import annotations

import json as json_text
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from metatree._util.named_file import typed_path
from metatree.errors import MetatreeError, UserError
from metatree.trees.sources import FILES, public_location
from metatree_agents.cli import _config as config
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING, WRONG_USE
from metatree_agents.cli.commands._trees import FOLDER

if TYPE_CHECKING:
    from metatree.storage.acceptance import Survey
    from metatree.trees.source_types import SourceRef

_FOREIGN: Final = re.compile(r"(?<=\s)\s|[^ -~]")
"""The same in a command, where letters that look like others, or are written from right to left, mislead as well."""
"""In which a password is not shown; a path is shown as it is."""
_STORES: Final = ("index.db", "memory.db", "service.db", "agents.db")
"""Of which one may have been accepted in a folder where it is not now."""
_ADDRESS: Final = re.compile(r"(?:mcp:\s*)?https?://\S*", re.IGNORECASE)


def trust(
    place: Annotated[
        Path | None,
        options.argument(
            "[PATH]",
            "A folder, its .metatree, or a tree in one file; the current folder by default.",
            parser=options.path,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show what is in it.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back that it is trusted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept it without asking.")] = False,
    json: options.Json = False,
) -> int:
    """Show what a tree that somebody else made would be allowed, and accept it.

    A tree may name commands to start, addresses and files elsewhere, hold permissions for tools, memories in the names
    of people, and the users of a query service. One that came with a folder is not used for any of that until it is
    accepted here. Yours are marked when they are made, with a key in METATREE_CONFIG_DIR; the trees below the folders
    in METATREE_TRUST need no mark.

    The settings of a folder (metatree.toml, or tool.metatree in pyproject.toml) may name a router, addresses, sources
    and tools, which are used from then on, while the file stays as it was shown.

    \b
    Example: metatree trust ~/src/shop --show
    """
    from metatree.storage.acceptance import accept, stores_in
    from metatree.storage.acceptance import revoke as take_back

    if revoke and (show or yes):
        raise UserError("--revoke goes with neither --show nor --yes")
    if revoke:
        return _take_back(typed_path(place or Path()), json)
    folder = _place(place or Path())
    wished = _wishes(folder)
    try:
        surveys = _surveyed(stores_in(folder))
    except UserError:
        if wished is None:
            raise
        surveys = []
    settings = [] if wished is None else [_settings_line(wished), *(f"  {line}" for line in wished.lines)]
    open_ = [each for each in surveys if not each.trusted or each.offered]
    asks = wished is not None and not wished.accepted
    if not open_ and not asks:
        return _finish(folder, surveys, json, "trusted: you made or accepted all of it", True, settings)
    if show:
        return _finish(folder, surveys, json, "", True, settings)
    for each in open_:
        if each.problem:
            raise UserError(
                f"{str(each.file)!r} cannot be accepted: {each.problem}; delete it, or name the others one by one"
            )
    if not json or not yes:
        for line in (*settings, *_lines(surveys)):
            output.note(line)
    if not yes and not output.agreed(
        f"trust {output.visible(str(folder))} with all of that?",
        f"nobody is at a terminal to ask: accept it with `metatree trust {output.word(str(folder))} --yes`,"
        " or only --show it",
    ):
        output.note("nothing was accepted")
        return WRONG_USE
    offered = {each.file: _sources_of(each) for each in open_ if each.trusted}
    accepted: list[Path] = []
    try:
        for each in open_:
            if not each.trusted:
                accept(each.file, each)
                accepted.append(each.file)
    except MetatreeError:  # all of it was asked for
        for done in accepted:
            take_back(done)
        raise
    for file, sources in offered.items():
        _build(file, sources)
    if wished is not None and asks:
        config.accept(wished.file)
        settings = [_settings_line(replace(wished, accepted=True)), *settings[1:]]
    surveys = _surveyed(stores_in(folder)) if surveys else []
    return _finish(folder, surveys, json, "accepted", True, settings)


def _surveyed(files: Sequence[Path]) -> list[Survey]:
    """Look into stores; what is wrong with the place of one, such as a link, keeps none of the others from view.

    Raises:
        UserError: there is no other.
    """
    from metatree.storage.acceptance import Survey, survey

    surveys = []
    for file in files:
        try:
            surveys.append(survey(file))
        except UserError as exc:
            if len(files) == 1:
                raise
            surveys.append(Survey(file, False, str(exc)))
    return surveys


def _take_back(place: Path, json: bool) -> int:
    """Take back all that was accepted in a folder and its tree, also what is not there now; return the exit code."""
    from metatree.storage.acceptance import drop_acceptance, drop_acceptances, revoke, stores_in, survey

    whole = place.absolute()  # `.` has no name
    settings = config.revoke(whole.parent if whole.name == FOLDER else whole)
    folders = [place, *([place / FOLDER] if whole.name != FOLDER else [])]
    for name in settings:
        output.note(f"{name}: not trusted any more")
    kept = [file for folder in folders for file in drop_acceptances(folder)]
    kept += [folder / name for folder in folders for name in _STORES if drop_acceptance(folder / name)]
    there = [folder for folder in folders if folder.exists()]
    files = [file for each in there for file in (sorted(each.glob("*.db")) if each.is_dir() else [each])]
    surveys = []
    for file in files:
        if file.is_symlink():
            output.note(f"{output.visible(str(file))} is a link, and passed over")
            continue
        with suppress(UserError):  # it is no store
            surveys += [survey(each) for each in stores_in(file)]
    if not (settings or kept or surveys):
        _check_there(place)
        raise UserError(f"there is no tree and no other store of metatree in {str(place)!r}")
    for each in surveys:
        if each.problem:
            output.note(f"{output.visible(str(each.file))} stays as it is: {each.problem}")
    revoked = {each.file for each in surveys if not each.problem and revoke(each.file)}.union(kept)
    if settings and not (surveys or kept):
        return FOUND
    surveys = [replace(each, trusted=each.trusted and each.file not in revoked) for each in surveys]
    said = f"{output.counted(len(revoked), 'store')} not trusted any more"
    return _finish(place, surveys, json, said, bool(revoked))


def _wishes(folder: Path) -> config.Wishes | None:
    """Return what the settings of the folder of a tree ask for."""
    if not folder.is_dir():
        return None
    return config.wishes(folder.parent if folder.name == FOLDER else folder)


def _settings_line(wished: config.Wishes) -> str:
    state = "accepted" if wished.accepted else "not accepted"
    return f"{output.plain(str(wished.file.path))}: {state}"


def _place(given: Path) -> Path:
    path = typed_path(given)
    if (
        path.is_dir()
        and path.name != FOLDER
        and not (path / "index.db").exists()
        and (path / FOLDER).is_dir()
    ):
        return path / FOLDER
    _check_there(path)
    return path


def _check_there(place: Path) -> None:
    if not place.exists():
        raise UserError(f"there is nothing at {str(place)!r}")


def _sources_of(survey: Survey) -> list[SourceRef]:
    """Return the sources that were shown; one where a link leads elsewhere is none of them."""
    from metatree.trees.sources import known_source, source_from_record

    return [
        known_source(source_from_record(record, survey.file.parent.resolve())) for record in survey.offered
    ]


def _build(index: Path, sources: list[SourceRef]) -> None:
    """Build the tree again from all the sources that were accepted."""
    from metatree_memory_tools import build_tree

    from metatree.storage.acceptance import drop_offer
    from metatree.trees.sources import check_source
    from metatree.trees.tree import Tree

    with Tree.open(index.parent) as tree:
        known = tree.sources()
    try:
        check_source(known, sources)
    except (
        UserError
    ):  # built again from the folder alone, which is none of them: there is nothing of one's own in it
        for end in ("-wal", "-shm", "-journal", ""):
            index.with_name(index.name + end).unlink(missing_ok=True)
    build_tree(*sources, out=index.parent).close()
    drop_offer(index)


def _finish(
    place: Path, surveys: list[Survey], json: bool, word: str, good: bool, settings: Sequence[str] = ()
) -> int:
    if json:
        stores = [_as_output(each) for each in surveys]
        output.write_json("trust", {"tree": str(place), "stores": stores, "settings": [*settings]})
    else:
        output.write([*settings, *_lines(surveys), *([word] if word else [])])
    return FOUND if good else NOTHING


def _as_output(survey: Survey) -> dict[str, Any]:
    return {
        **asdict(survey),
        "path": str(survey.file),
        "sources": [_source(record, survey) for record in _sources(survey)],
        "users": [f"{name} ({role})" for name, role in survey.users],
    }


def _sources(survey: Survey) -> list[dict[str, Any]]:
    """Return the sources that would be read; those that start something come last, where they are seen."""
    records = survey.offered if survey.trusted and survey.offered else survey.sources
    return sorted(records, key=lambda record: record["type"] not in FILES)


def _lines(surveys: list[Survey]) -> Iterator[str]:
    for survey in surveys:
        state = "not yours"
        if survey.trusted:
            state = "yours, but without the sources below, which came with it" if survey.offered else "yours"
        problem = f", and cannot be accepted: {survey.problem}" if survey.problem else ""
        yield f"{output.plain(str(survey.file))}: {state}{output.plain(problem)}"
        for word, number in survey.held.items():
            yield f"  holds {word}: {number:,}"
        if survey.authors:
            more = _more(survey, "authors", " and {:,} others")
            yield (
                f"  holds {output.counted(survey.memories, 'remembered text')} of"
                f" {output.plain(', '.join(survey.authors))}{more}"
            )
        if survey.runs:
            without = "" if survey.trusted else ", without what was permitted in them, and boards elsewhere"
            yield f"  holds {output.counted(survey.runs, 'run')} that could be resumed{without}"
        for name, role in survey.users:
            yield f"  lets {output.plain(name)} log in, as {output.plain(role)}"
        yield from filter(None, [_more(survey, "users", "  lets {:,} others log in")])
        for tool in survey.permissions:
            yield f"  lets {output.plain(tool)} change things without asking"
        yield from filter(
            None, [_more(survey, "permissions", "  lets {:,} other tools change things without asking")]
        )
        for record in _sources(survey):
            text = _source(record, survey)
            yield f"  {output.plain(text, _FOREIGN) if text.startswith('starts ') else output.plain(text)}"


def _more(survey: Survey, what: str, text: str) -> str:
    number = survey.unnamed.get(what, 0)
    return text.format(number) if number else ""


def _source(record: dict[str, Any], survey: Survey) -> str:
    """Say what a source of a tree would do; whole, but for passwords in addresses of one's own."""
    from metatree.trees.sources import source_from_record

    source = source_from_record(record, survey.file.parent.resolve())
    if survey.trusted and not survey.offered:
        source = replace(source, location=public_location(source.location))
    option_text = json_text.dumps(dict(source.options), ensure_ascii=False)
    with_ = f" with {option_text}" if source.options else ""
    if source.type in FILES:
        return f"reads {source.location}{with_}"
    if source.type == "mcp" and not _ADDRESS.fullmatch(source.location.strip()):
        folders = (source.options.get(name) for name in ("cwd", "named_in"))
        is_placed = any(isinstance(folder, str) and folder.startswith("/") for folder in folders)
        where = "" if is_placed else ", in your home"
        # As it is: what hides passwords would hide parts of a command.
        return f"starts {source.location}{with_}{where}"
    if source.type == "openapi":
        return (
            f"reads {source.type}:{source.location}{with_}, and calls the operations that it describes where it says,"
            f" {config.CREDENTIALS}"
        )
    location = source.location.casefold()
    is_server = source.type == "database" and ("://" in location or "postgres" in "".join(location.split()))
    password = f", and gives it the password in {config.PASSWORDS}, if it asks" if is_server else ""
    return f"reads {source.type}:{source.location}{with_}{password}"
