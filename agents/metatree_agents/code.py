"""The agent that writes code asks here first: which files does an issue want edited, and where in them?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from metatree.errors import UserError
from metatree.trees.sources import inner_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from metatree_routers import FoundFile

    from metatree import Limits, Node, SearchResult, Tree
    from metatree.protocols import AnyEvidence, AnyRouter, Evidence
    from metatree.result import TraceEntry

_MOST_DEFINITIONS = 5
MOST_AUTO = 5
"""Files at most where nobody said how many."""
AUTO_SHARE = 0.9
"""Of the score of the best file, that each further one then has."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, method or class inside a file to edit."""

    name: str
    """Dotted name inside the file, such as `Session.resolve_redirects`."""
    start_line: int
    """First line, counted from 1."""
    end_line: int
    """Last line, included."""


@dataclass(frozen=True, slots=True)
class FileToEdit:
    """A file that an issue probably wants edited."""

    path: str
    """Relative to the source, with `/`."""
    score: float
    """In [0, 1], higher is better; comparable within one call."""
    reason: str
    """Why this file, in a few words or the line that matched."""
    definitions: tuple[Definition, ...] = ()
    """The definitions in it that fit the issue best, best first; empty when none stands out."""
    node: str = ""
    """Id of its node in the tree."""
    source: str = ""
    """The source that the path is relative to, in a tree of several sources."""

    @property
    def place(self) -> str:
        """The path with its source before it, if the tree has several."""
        return f"{self.source}/{self.path}" if self.source else self.path


def files_to_edit(
    issue: str,
    tree: Tree,
    k: int | Literal["auto"] = 5,
    *,
    accept: Callable[[Node], bool] | None = None,
    router: AnyRouter | None = None,
    evidence: AnyEvidence | None = None,
    limits: Limits | None = None,
) -> list[FileToEdit]:
    """List the files that an issue wants edited, best first, each with its best definitions and their lines.

    Args:
        issue: the whole text: title, prose, code blocks, traceback.
        tree: a tree of the source code, as `build_tree` makes it.
        k: how many files at most; "auto" for those that fit nearly as well as the best, up to five.
        accept: says which files may be listed; None for all.
        router: chooses the way through the tree; None for the embedded one, which needs no model.
        evidence: scores nodes for the issue; None for the text index.
        limits: bounds of the search.

    Raises:
        UserError: the issue is empty, or `k` is neither a number nor "auto".
    """
    most = MOST_AUTO if k == "auto" else k
    if not isinstance(most, int):
        raise UserError(f'k={k!r}: give a number, or "auto"')
    files, _ = locate(issue, tree, most, accept=accept, router=router, evidence=evidence, limits=limits)
    return nearly_best(files) if k == "auto" else files


def _of_this_user(tree: Tree, accept: Callable[[Node], bool] | None) -> Callable[[Node], bool] | None:
    """Return what says which files may be listed: none that somebody else added, whose path is what they say."""
    others = (
        {node_id for node_id in tree.ids(["file"]) if tree.is_imported(node_id)}
        if tree.has_imported()
        else ()
    )
    if not others:
        return accept
    return lambda node: node.id not in others and (accept is None or accept(node))


def nearly_best(files: Sequence[FileToEdit]) -> list[FileToEdit]:
    """Return the first file, and those after it that fit nearly as well; never more than `MOST_AUTO`.

    The share is where F1 is best on issues whose fix is known; between .85 and .99 it moves by less than the noise.
    """
    kept = list(files[:1])
    for file in files[1:MOST_AUTO]:
        if file.score < AUTO_SHARE * kept[0].score:
            break
        kept.append(file)
    return kept


def locate(
    issue: str,
    tree: Tree,
    k: int = 5,
    *,
    accept: Callable[[Node], bool] | None = None,
    router: AnyRouter | None = None,
    evidence: AnyEvidence | None = None,
    limits: Limits | None = None,
    on_event: Callable[[TraceEntry], None] | None = None,
    run_id: str | None = None,
) -> tuple[list[FileToEdit], SearchResult]:
    """List the files to edit as `files_to_edit` does, with the search that found them: its trace and its cost."""
    from metatree import Tree, search
    from metatree.parts import as_evidence, find_evidence

    if not isinstance(tree, Tree):
        raise UserError(f"tree={tree!r}: give a Tree, from Tree.open(path) or build_tree(path)")
    if not issue.strip():
        raise UserError("the issue is empty: give its title and text")
    scores = as_evidence(evidence) if evidence else find_evidence(tree, required=True)
    fits = _of_this_user(tree, accept)
    result = search(
        [issue],
        tree=tree,
        returns="nodes",
        k=k,
        accept={"file"} if fits is None else lambda node: node.kind == "file" and fits(node),
        router=router,
        evidence=_scored_by(scores, tree, router, fits),
        limits=limits,
        on_event=on_event,
        run_id=run_id,
    )
    return _files(issue, tree, result, router, scores), result


def relocate(
    run_id: str,
    tree: Tree,
    *,
    router: AnyRouter | None = None,
    limits: Limits | None = None,
    on_event: Callable[[TraceEntry], None] | None = None,
) -> tuple[list[FileToEdit], SearchResult]:
    """Go on with a run that `locate` began on a tree, and list the files as it does."""
    from metatree import resume, runs
    from metatree.parts import find_evidence

    evidence = find_evidence(tree, required=True)
    scored_by = _scored_by(evidence, tree, router)
    result = resume(run_id, tree=tree, router=router, evidence=scored_by, limits=limits, on_event=on_event)
    issue = next(each.given["questions"][0] for each in runs(tree=tree) if each.run_id == run_id)
    return _files(issue, tree, result, router, evidence), result


def _scored_by(
    evidence: Evidence | None,
    tree: Tree,
    router: AnyRouter | None,
    accept: Callable[[Node], bool] | None = None,
) -> Evidence | None:
    """Return the evidence that scores whole files against each other, not their best definitions."""
    from metatree_routers import FileEvidence, TextEvidence

    if router is None and isinstance(evidence, TextEvidence):
        return FileEvidence(evidence, tree, accept=accept)
    return evidence


def _files(
    issue: str, tree: Tree, result: SearchResult, router: AnyRouter | None, evidence: Evidence | None
) -> list[FileToEdit]:
    """Return the files that a search found, with why each was and the definitions in it."""
    ranked = _ranked(issue, tree, result, evidence)
    files = []
    for found in result.nodes:
        if tree.is_imported(found.id):
            continue  # a run that goes on may have listed it
        path, source = place_of(tree, found.id)
        known = ranked.get(found.id)
        if known is None:
            definitions = _definitions(issue, tree, found.id, evidence)
            files.append(FileToEdit(path, found.score, found.reason, definitions, found.id, source))
            continue
        # A router of the caller's says itself why it chose a file; the embedded one goes by what the index says.
        reason = known.reason if router is None and known.reason else found.reason
        definitions = tuple(Definition(d.name, d.start_line, d.end_line) for d in known.definitions)
        files.append(FileToEdit(path, found.score, reason, definitions, found.id, source))
    return files


def place_of(tree: Tree, file: str) -> tuple[str, str]:
    """Return the path of a file and the source that it is relative to, empty in a tree of one folder."""
    source, node = tree.source_of(file), tree.get(file)
    path = node.source.path if node.source is not None else file
    if source is None or not source.mount:
        return path, ""
    place = Path(source.location)
    return inner_path(source, path), str(place.parent if source.type == "file" else place)


def _ranked(
    issue: str, tree: Tree, result: SearchResult, evidence: Evidence | None
) -> Mapping[str, FoundFile]:
    """Return what the text index knows of the files that were found: why they fit, and where."""
    from metatree_routers import TextEvidence, rank_files

    if not isinstance(evidence, TextEvidence) or not result.nodes:
        return {}
    ids = {node.id for node in result.nodes}
    return {
        file.node_id: file for file in rank_files(evidence, tree, issue, len(ids), accept=ids.__contains__)
    }


def _definitions(issue: str, tree: Tree, file: str, evidence: Evidence | None) -> tuple[Definition, ...]:
    """Return the definitions in a file that any evidence scores best."""
    found = []
    for scored in evidence.score([issue], under=file, k=50) if evidence is not None else ():
        node = tree.find(scored.node_id)
        if node is None or node.kind != "definition" or node.source is None:
            continue
        if node.source.start_line is not None and node.source.end_line is not None:
            name = node.id.partition("::")[2] or node.title
            found.append(Definition(name, node.source.start_line, node.source.end_line))
    return tuple(found[:_MOST_DEFINITIONS])
