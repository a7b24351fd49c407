"""What the commands that search share: router, limits, progress, what Ctrl-C leaves behind, looking on the web."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from metatree import plugins
from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import Cancelled, defer_failure_warning, exit_code
from metatree_agents.cli.printing.answers import failed_fallbacks, summary, warning
from metatree_agents.cli.printing.progress import SearchProgress, search_line
from metatree_agents.cli.printing.traces import path_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metatree import Limits, SearchResult, Tree
    from metatree.protocols import Suite


def new_run_id() -> str:
    """Return a short name for a run that is not in use."""
    return secrets.token_hex(4)


def limits_of(max_calls: int | None, max_seconds: float | None) -> Limits | None:
    """Return the limits that the options ask for; None when they ask for none."""
    from metatree import Limits

    bounds: dict[str, Any] = {}
    if max_calls is not None:
        bounds |= {"router_calls": max_calls, "model_calls": max_calls}
    if max_seconds is not None:
        bounds["seconds"] = max_seconds
    return Limits(**bounds) if bounds else None


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
    # A router's name may say more after a slash, such as the model that it calls.
    plugin = name.partition("/")[0]
    installed = plugins.available(plugins.ROUTERS)
    if plugin not in installed:
        raise UserError(f"no router {name!r} is installed; there is {', '.join(sorted(installed))}")
    suite: Suite = plugins.load(plugins.ROUTERS, plugin)(name)
    return {
        "router": suite.router,
        "reader": suite.reader,
        "tool_caller": suite.tool_caller,
        "composer": suite.composer,
        "describer": suite.describer,
    }


def router_of_environment() -> str | None:
    """Return the router that the environment names, None when it names none."""
    return os.environ.get("METATREE_ROUTER") or ("openai" if os.environ.get("METATREE_MODEL") else None)


def with_evidence(parts: dict[str, Any], tree: Tree) -> dict[str, Any]:
    """Return the parts with the evidence of a tree, whose index is built now if it is not yet.

    A router that asks a model works without, but hints from the evidence save it calls.
    """
    if not parts or "text" not in plugins.available(plugins.EVIDENCE):
        return parts
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


def open_question(result: SearchResult, tree: Tree) -> str:
    """Return the id of the question on the blackboard of a tree that a run waits for; empty when there is none."""
    if result.ended != "waiting":
        return ""
    from metatree import Blackboard

    return next((item.id for item in Blackboard(tree).open_questions() if item.run == result.run_id), "")


def ended(result: SearchResult, tree: Tree, *, verbose: bool, question: str = "") -> int:
    """Say on standard error how a search ended and how it goes on; return the exit code.

    Args:
        tree: the tree that was searched; it may be closed.
        verbose: whether to tell its path too.
        question: id of the question on the blackboard that it waits for.
    """
    if verbose:
        output.note("\nPath")
        for line in path_lines(result.trace):
            output.note(line)
    if text := warning(result):
        output.note(f"warning: {output.visible(text)}")
    for why in failed_fallbacks(result):
        output.note(f"warning: {output.visible(why)}")
    output.note(output.visible(summary(result)))
    match result.ended:
        case "limit" if tree.memory.read_only:
            pass
        case "limit":
            output.note(f"go on with: metatree resume {result.run_id}")
        case "waiting" if question:
            output.note(f"answer it with: metatree answer {question} TEXT")
        case "waiting":
            output.note(f"answer it with: metatree resume {result.run_id} --answer TEXT")
    return exit_code(result)


def web_fallbacks(address: str | None) -> tuple[list[Any], list[Any]]:
    """Return fallbacks and tools for a search; both empty when no engine is named.

    Args:
        address: of a SearXNG instance; None for the one in the environment.

    Raises:
        UserError: it is no address.
    """
    from metatree_memory_tools.web.search import configured_fallback

    fallback = configured_fallback(address)
    if fallback is None:
        return [], []
    from metatree_memory_tools.web.tools import page_tools

    return [fallback], list(page_tools)


def restored_fallbacks(given: list[str], fallbacks: list[Any]) -> list[Any]:
    """Return the fallbacks of a run that is taken up again, in the order in which it was begun with them."""
    from metatree import ask_person

    pending = list(fallbacks)
    return [pending.pop(0) if kind == "call" and pending else ask_person for kind in given]


def web_parts(web: str | None) -> dict[str, Any]:
    """Return what `--web` adds to the arguments of `search`; nothing when no engine is named."""
    fallbacks, tools = web_fallbacks(web)
    return {"tools": tools, "fallbacks": fallbacks} if fallbacks else {}
