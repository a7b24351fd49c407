"""`metatree trace`, `runs` and `resume`: what searches did, and how one that stopped goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._exit_codes import FOUND, NOTHING

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.durable import RunInfo


def trace(
    run: Annotated[
        str | None,
        typer.Argument(parser=options.given, metavar="RUN", help="Name of the run; the last by default."),
    ] = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Print every decision of a run: why each branch was taken or ruled out.

    \b
    Example: metatree trace --source ~/src/requests
    """
    from metatree import load_run
    from metatree_agents.cli._trace_text import trace_lines
    from metatree_agents.cli._trees import existing_tree
    from metatree_agents.cli.answer_text import summary
    from metatree_agents.cli.schemas.search import trace_shape

    with existing_tree(source, tree) as opened:
        run = run or _last_run(opened)
        result = load_run(run, tree=opened)
        collects = _collects(opened, run)
    if json:
        output.write_json(trace_shape(result))
    else:
        output.write(trace_lines(result.trace, collects=collects))
        output.note(output.visible(summary(result)))
    return FOUND


def runs(
    source: options.Source = None,
    tree: options.TreePath = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """List the runs in the journal of a tree, the last first.

    \b
    Example: metatree runs --source ~/src/requests
    """
    from metatree import runs as list_runs
    from metatree_agents.cli._trees import existing_tree
    from metatree_agents.cli.schemas.search import RunShape, RunsShape

    with existing_tree(source, tree) as opened:
        listed = list_runs(tree=opened)
    if json:
        shapes = [
            RunShape(
                run=each.run_id,
                machine=each.machine,
                questions=list(each.given.get("questions", ())),
                ended=each.ended,
                began_at=_iso(each.began_at),
                updated_at=_iso(each.updated_at),
            )
            for each in listed
        ]
        output.write_json(RunsShape(runs=shapes))
    elif listed:
        output.write(
            f"{each.run_id}  {_local(each.updated_at)}  {each.ended or 'unfinished':10}  "
            f"{_questions(each)}".rstrip()
            for each in listed
        )
    else:
        output.note('no runs yet: `metatree ask "…"` makes one')
    return FOUND if listed else NOTHING


def resume(
    run: Annotated[
        str,
        typer.Argument(
            parser=options.given, metavar="RUN", help="Name of the run; `metatree runs` lists them."
        ),
    ],
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer", metavar="TEXT", help="Answer to the question that it waits for; - or @FILE too."
        ),
    ] = None,
    source: options.Source = None,
    tree: options.TreePath = None,
    router: options.Router = None,
    max_calls: options.MaxCalls = None,
    max_seconds: options.MaxSeconds = None,
    allow: options.Allow = None,
    web: options.Web = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Go on with a run that was cancelled, reached a limit or waits for a person.

    What was found and paid for is not asked again. The limits given here replace the earlier ones. A run that was begun
    with --web needs it again.

    \b
    Example: metatree resume 1f6c9a02 --max-calls 500
    """
    from metatree import resume as go_on
    from metatree_agents.cli._inputs import text_of
    from metatree_agents.cli._permits import permit_of
    from metatree_agents.cli._run_options import kept
    from metatree_agents.cli._run_search import (
        asked_on_board,
        ended,
        limits_of,
        suite_parts,
        watched,
        with_hints,
    )
    from metatree_agents.cli._trees import existing_tree
    from metatree_agents.cli._web_fallback import browsing, chain_of
    from metatree_agents.cli.answer_text import answer_lines, file_lines, node_lines
    from metatree_agents.cli.schemas.search import ask_shape, files_shape, find_shape
    from metatree_agents.code import relocate

    parts = suite_parts(router)
    with existing_tree(source, tree) as opened:
        if _collects(opened, run) and (asked := kept(opened, run)) is not None:
            if answer is not None:
                raise UserError(f"run {run!r} waits for no answer (it lists files): leave --answer out")
            with watched(run, opened) as progress:
                limits = limits_of(max_calls, max_seconds)
                files, result = relocate(
                    run, opened, router=parts.get("router"), limits=limits, on_event=progress
                )
            files = asked.cut(files)
            if json:
                output.write_json(files_shape(files, result.usage))
            else:
                output.write(file_lines(files, result))
            return ended(result, opened, verbose=verbose)
        answers = None
        if answer is not None:
            answers = {_waiting_question(opened, run): text_of(answer, what="answer")}
        fallbacks, tools = browsing(web)
        with watched(run, opened) as progress:
            result = go_on(
                run,
                tree=opened,
                answers=answers,
                tools=tools,
                fallbacks=chain_of(_fallbacks(opened, run), fallbacks),
                permit=permit_of(opened, allow, tools),
                limits=limits_of(max_calls, max_seconds),
                on_event=progress,
                **with_hints(parts, opened),
            )
        nodes_only = _collects(opened, run)
        if json:
            output.write_json(find_shape(result) if nodes_only else ask_shape(result))
        else:
            output.write(node_lines(result) if nodes_only else answer_lines(result, opened))
        waits_for = asked_on_board(result, opened)
    return ended(result, opened, verbose=verbose, asked=waits_for)


def _last_run(tree: Tree) -> str:
    from metatree import runs as list_runs

    listed = list_runs(tree=tree)
    if not listed:
        raise UserError('this tree has no runs yet: `metatree ask "…"` makes one')
    return listed[0].run_id


def _collects(tree: Tree, run_id: str) -> bool:
    """Say whether a run collects nodes rather than reads answers; False when there is no such run."""
    from metatree import runs as list_runs

    found = next((each for each in list_runs(tree=tree) if each.run_id == run_id), None)
    return found is not None and found.given["returns"] == "nodes"


def _fallbacks(tree: Tree, run_id: str) -> list[str]:
    """Return the kinds of fallbacks that a run was begun with; none when there is no such run."""
    from metatree import runs as list_runs

    found = next((each for each in list_runs(tree=tree) if each.run_id == run_id), None)
    return [] if found is None else list(found.given.get("fallbacks") or [])


def _waiting_question(tree: Tree, run: str) -> str:
    from metatree import load_run

    result = load_run(run, tree=tree)
    if result.ended != "waiting":
        raise UserError(f"run {run!r} waits for no answer (it is {result.ended}): leave --answer out")
    return result.detail


def _questions(run: RunInfo, width: int = 100) -> str:
    line = output.visible(" ".join(" / ".join(run.given.get("questions", ())).split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
