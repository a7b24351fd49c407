"""`metatree trace`, `runs` and `resume`: what searches did, and how one that stopped goes on."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING

if TYPE_CHECKING:
    from metatree import Tree

_WIDE = 100


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
    from metatree_agents.cli.commands._trees import existing_tree
    from metatree_agents.cli.printing.answers import summary
    from metatree_agents.cli.printing.traces import trace_lines

    with existing_tree(source, tree) as opened:
        run = run or _last_run(opened)
        result = load_run(run, tree=opened)
        collects = _collects(opened, run)
    if json:
        from metatree_agents.cli.schemas.search import TraceOutput

        output.write_json(TraceOutput.model_validate(result))
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
    from metatree_agents.cli.commands._trees import existing_tree

    with existing_tree(source, tree) as opened:
        listed = list_runs(tree=opened)
    if json:
        from metatree_agents.cli.schemas.search import RunsOutput

        rows = [{**asdict(each), "questions": each.given.get("questions", ())} for each in listed]
        output.write_json(RunsOutput.model_validate({"runs": rows}))
    elif listed:
        output.write(
            f"{each.run_id}  {_local(each.updated_at)}  {each.ended or 'unfinished':10}  "
            f"{output.one_line(' / '.join(each.given.get('questions', ())), _WIDE)}".rstrip()
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
    from metatree_agents.cli.commands._permits import permit_of
    from metatree_agents.cli.commands._run_options import load_options
    from metatree_agents.cli.commands._search import (
        ended,
        limits_of,
        open_question,
        restored_fallbacks,
        suite_parts,
        watched,
        web_fallbacks,
        with_evidence,
    )
    from metatree_agents.cli.commands._trees import existing_tree
    from metatree_agents.cli.printing.answers import answer_lines, file_lines, node_lines
    from metatree_agents.code import relocate

    parts = suite_parts(router)
    with existing_tree(source, tree) as opened:
        if _collects(opened, run) and (file_options := load_options(opened, run)) is not None:
            if answer is not None:
                raise UserError(f"run {run!r} waits for no answer (it lists files): leave --answer out")
            with watched(run, opened) as progress:
                limits = limits_of(max_calls, max_seconds)
                files, result = relocate(
                    run, opened, router=parts.get("router"), limits=limits, on_event=progress
                )
            files = file_options.cut(files)
            if json:
                from metatree_agents.cli.schemas.search import FilesOutput

                output.write_json(FilesOutput.model_validate({"files": files, "usage": result.usage}))
            else:
                output.write(file_lines(files, result))
            return ended(result, opened, verbose=verbose)
        answers = None
        if answer is not None:
            answers = {_waiting_question(opened, run): text_of(answer, what="answer")}
        fallbacks, tools = web_fallbacks(web)
        with watched(run, opened) as progress:
            result = go_on(
                run,
                tree=opened,
                answers=answers,
                tools=tools,
                fallbacks=restored_fallbacks(_fallbacks(opened, run), fallbacks),
                permit=permit_of(opened, allow, tools),
                limits=limits_of(max_calls, max_seconds),
                on_event=progress,
                **with_evidence(parts, opened),
            )
        nodes_only = _collects(opened, run)
        if json:
            from metatree_agents.cli.schemas.search import AskOutput, FindOutput

            output.write_json((FindOutput if nodes_only else AskOutput).model_validate(result))
        else:
            output.write(node_lines(result) if nodes_only else answer_lines(result, opened))
        waits_for = open_question(result, opened)
    return ended(result, opened, verbose=verbose, question=waits_for)


def _last_run(tree: Tree) -> str:
    from metatree import runs as list_runs

    listed = list_runs(tree=tree)
    if not listed:
        raise UserError('this tree has no runs yet: `metatree ask "…"` makes one')
    return listed[0].run_id


def _collects(tree: Tree, run_id: str) -> bool:
    """Say whether a run collects nodes rather than reads answers; False when there is no such run."""
    from metatree import runs as list_runs

    run = next((each for each in list_runs(tree=tree) if each.run_id == run_id), None)
    return run is not None and run.given["returns"] == "nodes"


def _fallbacks(tree: Tree, run_id: str) -> list[str]:
    """Return the kinds of fallbacks that a run was begun with; none when there is no such run."""
    from metatree import runs as list_runs

    run = next((each for each in list_runs(tree=tree) if each.run_id == run_id), None)
    return [] if run is None else list(run.given.get("fallbacks") or [])


def _waiting_question(tree: Tree, run: str) -> str:
    from metatree import load_run

    result = load_run(run, tree=tree)
    if result.ended != "waiting":
        raise UserError(f"run {run!r} waits for no answer (it is {result.ended}): leave --answer out")
    return result.detail


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
