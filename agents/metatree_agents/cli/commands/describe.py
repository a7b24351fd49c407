"""`metatree describe`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, LIMIT, WRONG_USE, Cancelled
from metatree_agents.cli.commands._trees import TreeOptions, node_named

if TYPE_CHECKING:
    from metatree_routers.llm import Described, Estimate

    from metatree.protocols import Describer

Model = Annotated[
    str | None,
    options.option(
        "--router",
        "NAME",
        "The chat model that writes: `openai/MODEL`, `ollama/MODEL`, `anthropic/MODEL`, `gemini/MODEL`,"
        " `openrouter/MODEL`; by default METATREE_ROUTER, or the model in METATREE_MODEL.",
    ),
]


def describe(
    *,
    where: TreeOptions,
    router: Model = None,
    under: Annotated[
        str | None, options.option("--under", "NODE", "Only this node and what lies below it.")
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", min=1, metavar="N", help="Stop after N requests; run it again to go on."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    json: options.Json = False,
) -> int:
    """Have a model write the descriptions that menus show, after showing what that takes.

    Twenty nodes go into one request, children before their parents. The words are kept in the tree's memory: a run that
    was cut off goes on where it stopped, and the next one asks only for what changed and what lies above it. Words that
    somebody gave by hand stay.

    \b
    Example: metatree describe --router openai/gpt-5-mini --under src
    """
    from metatree_routers.llm.describe_tree import describe_tree, estimate

    from metatree_agents.cli.printing.progress import build_bar

    name, describer = _describer(router)
    with where.ready() as tree:
        node = None if under is None else node_named(tree, under)
        sized = {"prompt_tokens": describer.prompt_tokens} if hasattr(describer, "prompt_tokens") else {}
        planned = estimate(tree, under=node, **sized)
        about = {**asdict(planned), "cost_usd": _cost(describer, planned)}
        if not json or not (yes or dry_run):
            output.note(_planned_line(name, about))
        done: Described | None = None
        if planned.nodes and not dry_run:
            if not yes and not _agreed(planned):
                output.note("nothing was described")
                return WRONG_USE
            try:
                with build_bar("describing") as bar:
                    step = None if bar is None else lambda at, total: bar(at, total, "")
                    done = describe_tree(tree, describer, under=node, max_calls=max_calls, on_progress=step)
            except KeyboardInterrupt as interrupt:
                raise Cancelled(
                    "cancelled; what was described is kept: the same command again goes on"
                ) from interrupt
    if json:
        described = None if done is None else asdict(done)
        output.write_json("describe", {"model": name, "estimate": about, "described": described})
    elif done is not None:
        output.write([_done_line(done)])
    return FOUND if done is None else _ended(done)


def _describer(router: str | None) -> tuple[str, Describer]:
    """Return the name of the model that writes, and the part that asks it."""
    from metatree.parts import suite_named
    from metatree_agents.cli.commands._search import router_of_environment

    name = router or router_of_environment()
    if name is None:
        raise UserError("no model is named: write --router openai/MODEL, ollama/MODEL or another chat model")
    describer: Any = suite_named(name).describer
    if not describer.traits.uses_model:
        raise UserError(f"{name!r} writes no text: name a chat model, such as --router openai/MODEL")
    connection = getattr(describer, "connection", None)
    return (name if connection is None else connection.model), describer


def _cost(describer: Any, planned: Estimate) -> float | None:
    price = getattr(getattr(describer, "connection", None), "price", None)
    return None if price is None else float(price.of(planned.tokens_in, planned.tokens_out))


def _planned_line(name: str, about: dict[str, Any]) -> str:
    if not about["nodes"]:
        return f"all is described: {about['unchanged']:,} nodes as they were, {about['kept']:,} with words of their own"
    return (
        f"{output.counted(about['nodes'], 'node')} to describe with {output.visible(name)}:"
        f" {output.counted(about['requests'], 'request')}, about {about['tokens_in']:,} tokens in and"
        f" {about['tokens_out']:,} out{_dollars(about['cost_usd'], ' (no price of this model is known)')}"
    )


def _done_line(done: Described) -> str:
    return (
        f"{output.counted(done.written, 'node')} described in {output.counted(done.calls, 'request')},"
        f" {done.tokens_in:,} tokens in and {done.tokens_out:,} out{_dollars(done.cost_usd, '')};"
        f" {done.unchanged:,} unchanged, {done.kept:,} kept"
    )


def _dollars(cost: float | None, unknown: str) -> str:
    return unknown if cost is None else f", US$ {cost:.4f}" if cost < 0.1 else f", US$ {cost:.2f}"


def _agreed(planned: Estimate) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError("nobody is at a terminal to ask: look with --dry-run, and do it with --yes")
    count = output.counted(planned.requests, "request")
    print(f"send {count}? [y]es, [N]o: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _ended(done: Described) -> int:
    if not done.failed:
        return FOUND
    why, left = list(done.failed.values())[-1], output.counted(len(done.failed), "node")
    output.note(f"warning: {left} left for the next time (the last: {output.visible(why)})")
    return LIMIT if why.startswith("max_calls") else FAILED
