"""What the commands that search share: their parts, progress, what Ctrl-C leaves behind, how they end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, assert_never

from metatree import plugins
from metatree.parts import suite_named
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import Cancelled, defer_failure_warning, exit_code
from metatree_agents.cli.printing.progress import SearchProgress, search_line
from metatree_agents.cli.printing.results import (
    calls_that_changed,
    failed_fallbacks,
    file_lines,
    node_lines,
    summary,
    warning,
)
from metatree_agents.cli.printing.traces import path_lines

if TYPE_CHECKING:
    from metatree import SearchResult, Tree
    from metatree.protocols import Suite
    from metatree_agents.basis import Basis
    from metatree_agents.code import FileToEdit


def new_run_id() -> str:
    """Return a short name for a run that is not in use."""
    return secrets.token_hex(4)


def suite_parts(name: str | None) -> dict[str, Any]:
    """Return the parts that think, as arguments of `search`, for the name of a router.

    Args:
        name: None for `METATREE_ROUTER`, else the model in `METATREE_MODEL`, else the embedded router.

    Raises:
        UserError: no router has this name; the message lists those that are installed.
    """
    name = name or router_of_environment()
    if name is None:
        return {}
    suite = suite_named(name)
    if _brings_all(suite):
        return {"router": suite.router}
    return {
        "router": suite.router,
        "reader": suite.reader,
        "tool_caller": suite.tool_caller,
        "composer": suite.composer,
        "describer": suite.describer,
    }


def _brings_all(suite: Suite) -> bool:
    """Whether a router comes with these parts by itself: the search then makes them for the tree that it searches."""
    own = suite.router.suite()
    return own is not None and all(type(getattr(own, part)) is type(getattr(suite, part)) for part in _PARTS)


_PARTS = ("router", "reader", "tool_caller", "composer", "describer")


def router_of_environment() -> str | None:
    """Return the router that the environment names, None when it names none."""
    return os.environ.get("METATREE_ROUTER") or ("openai" if os.environ.get("METATREE_MODEL") else None)


def with_evidence(parts: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    """Return the parts with the evidence of a tree, whose index is built now if it is not yet.

    A router that asks a model works without, but hints from the evidence save it calls.
    """
    if "router" not in parts or "text" not in plugins.available(plugins.EVIDENCE):
        return dict(parts)
    return {**parts, "evidence": plugins.load(plugins.EVIDENCE, "text")(tree, required=True)}


@contextmanager
def watched(run_id: str, tree: Tree) -> Iterator[SearchProgress | None]:
    """Show what a search does while it runs; turn Ctrl-C into `Cancelled`, which says how to go on, if that can be."""
    try:
        with search_line() as progress, defer_failure_warning():
            yield progress
    except KeyboardInterrupt as interrupt:
        if tree.memory.read_only:
            raise Cancelled("cancelled") from interrupt
        raise Cancelled(
            f"cancelled; what was found is kept: go on with `metatree resume {run_id}`"
        ) from interrupt


def finish(
    command: Literal["ask", "find", "files"],
    result: SearchResult,
    tree: Tree,
    *,
    json: bool,
    verbose: bool,
    asked: str,
    under: str | None = None,
    files: Sequence[FileToEdit] = (),
    refreshed: bool = False,
) -> int:
    """Print what a search found as a command prints it, and say how it ended; return the exit code.

    Args:
        command: which one.
        result: what was found.
        tree: the tree that was searched.
        json: whether JSON is printed.
        verbose: whether the path of the search is told.
        asked: the questions, for what to say when nothing was found.
        under: the node that it was searched below.
        files: those that `files` found.
        refreshed: whether the tree was just brought up to date.
    """
    from metatree_agents.basis import basis_of
    from metatree_agents.nothing_found import near_names, why_empty

    found = {"ask": result.answers or result.closest, "find": result.nodes, "files": files}[command]
    empty = "" if found or result.ended != "exhausted" else why_empty(tree, asked, under or "")
    basis = basis_of(tree) if json or (not refreshed and tree.stale()) else None
    if json:
        output.write_json(command, result, files=files, empty=empty, basis=basis)
    else:
        match command:
            case "ask":
                from metatree_agents.cli.printing.answers import answer_lines

                output.write(answer_lines(result, tree, verbose=verbose))
            case "find":
                for sentence in result.sentences:
                    output.remark(output.visible(sentence))
                if any(note.unknown for note in result.notes) and (names := near_names(tree, asked)):
                    output.remark(output.visible(f"nearest names: {names}"))
                output.write(node_lines(result, verbose=verbose))
            case "files":
                output.write(file_lines(files, result, verbose=verbose))
            case _:
                assert_never(command)
    if empty:
        output.note(output.visible(empty))
    note_stale(basis)
    return ended(result, tree, verbose=verbose, question=_open_question(result, tree))


def note_stale(basis: Basis | None) -> None:
    """Say in one line what an answer may miss, if its source has changed since it was indexed."""
    if basis is not None and basis.stale:
        files = output.counted(basis.changed_since, "file") if basis.changed_since else "something"
        since = basis.indexed_at or "it was built"
        output.note(f"warning: stale: {files} changed since {since}; `metatree build` takes it in")


def _open_question(result: SearchResult, tree: Tree) -> str:
    """Return the id of the question on the blackboard of a tree that a run waits for; empty when there is none."""
    if result.ended != "waiting":
        return ""
    from metatree import Blackboard

    return next((item.id for item in Blackboard(tree).open_questions() if item.run == result.run_id), "")


def ended(result: SearchResult, tree: Tree, *, verbose: bool, question: str = "") -> int:
    """Say on standard error how a search ended and how it goes on; return the exit code.

    Args:
        tree: the tree that was searched.
        verbose: whether to tell its path too.
        question: id of the question on the blackboard that it waits for.
    """
    if verbose:
        output.note("\nPath")
        for line in path_lines(result.trace):
            output.note(line)
    if text := warning(result):
        output.note(f"warning: {output.visible(text)}")
    for call in calls_that_changed(result):
        output.note(output.visible(call))
    for why in failed_fallbacks(result):
        output.note(f"warning: {output.visible(why)}")
    output.remark(output.visible(summary(result)))
    match result.ended:
        case "limit" if tree.memory.read_only:
            pass
        case "limit":
            output.note(f"go on with: metatree resume {output.word(result.run_id)}")
        case "waiting" if question:
            output.note(f"answer it with: metatree answer {output.word(question)} TEXT")
        case "waiting":
            output.note(f"answer it with: metatree resume {output.word(result.run_id)} --answer TEXT")
    return exit_code(result)


def web_parts(address: str | None) -> dict[str, Any]:
    """Return what looking on the web adds to the arguments of `search`; nothing when no engine is named.

    Args:
        address: of a SearXNG instance; None for the one in the environment.

    Raises:
        UserError: it is no address.
    """
    from metatree_memory_tools.web.search import configured_fallback

    fallback = configured_fallback(address)
    if fallback is None:
        return {}
    from metatree_memory_tools.web.tools import page_tools

    return {"tools": list(page_tools), "fallbacks": [fallback]}


def parts_for(
    tree: Tree,
    parts: Mapping[str, Any],
    *,
    allow: Sequence[str] | None,
    human: bool = False,
    terminal: bool = True,
) -> dict[str, Any]:
    """Return the parts of searches of a tree that may call tools and ask a person, as arguments of `search`.

    Args:
        tree: the tree.
        parts: those that think, from `suite_parts`, and what `web_parts` adds.
        allow: tools that may change something without asking.
        human: whether what the tree does not answer is put to a person.
        terminal: whether the person at the terminal may be asked for a permission.

    Raises:
        UserError: `allow` names no tool.
    """
    from metatree import ask_person
    from metatree_agents.cli.commands._permits import permit_of

    return {
        **with_evidence(parts, tree),
        "fallbacks": [*parts.get("fallbacks", ()), *([ask_person] if human else ())],
        "permit": permit_of(tree, allow, parts.get("tools", ()), terminal=terminal),
    }


def restored_fallbacks(kinds: Sequence[str], fallbacks: Sequence[Any]) -> list[Any]:
    """Return the fallbacks of a run that is taken up again, in the order in which it was begun with them."""
    from metatree import ask_person

    pending = list(fallbacks)
    return [pending.pop(0) if kind == "call" and pending else ask_person for kind in kinds]
