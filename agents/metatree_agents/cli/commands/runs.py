"""`metatree trace`, `runs` and `resume`: what searches did, and how one that stopped goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from metatree.errors import UserError
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli.commands._trees import TreeOptions

if TYPE_CHECKING:
    from metatree import Tree

_WIDE = 100


def trace(
    run: Annotated[
        str | None,
        options.argument("RUN", "Name of the run; the last by default."),
    ] = None,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Print every decision of a run, why each branch was taken or ruled out, and what stayed open at its end.

    \b
    Example: metatree trace --source ~/src/requests
    """
    from metatree import load_run
    from metatree_agents.cli.printing.answers import open_question_lines
    from metatree_agents.cli.printing.results import summary
    from metatree_agents.cli.printing.traces import trace_lines

    with where.existing() as opened:
        run = run or _last_run(opened)
        result = load_run(run, tree=opened)
        collects = _given(opened, run).get("returns") == "nodes"
        open_lines = [] if collects or json else list(open_question_lines(result, opened))
    if json:
        output.write_json("trace", result)
    else:
        output.write(trace_lines(result.trace, collects=collects))
        output.write(["", *open_lines] if open_lines else [])
        output.note(output.visible(summary(result)))
    return FOUND


def runs(
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """List the runs in the journal of a tree, the last first.

    \b
    Example: metatree runs --source ~/src/requests
    """
    from metatree import runs as list_runs

    with where.existing() as opened:
        listed = list_runs(tree=opened)
    if json:
        rows = [{**asdict(each), "questions": each.given.get("questions", ())} for each in listed]
        output.write_json("runs", {"runs": rows})
    elif listed:
        output.write(
            f"{output.visible(each.run_id)}  {_local(each.updated_at)}  {each.ended or 'unfinished':10}  "
            f"{output.one_line(' / '.join(each.given.get('questions', ())), _WIDE)}".rstrip()
            for each in listed
        )
    else:
        output.note('no runs yet: `metatree ask "…"` makes one')
    return FOUND if listed else NOTHING


def resume(
    run: Annotated[str, options.argument("RUN", "Name of the run; `metatree runs` lists them.")],
    answer: Annotated[
        str | None,
        options.option("--answer", "TEXT", "Answer to the question that it waits for; - or @FILE too."),
    ] = None,
    *,
    where: TreeOptions,
    router: options.Router = None,
    budget: options.Budget,
    allow: options.Allow = None,
    web: options.Web = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """Go on with a run that was cancelled, reached a limit or waits for a person.

    What was found and paid for is not asked again. The limits given here replace the earlier ones. A run that was begun
    with --web needs it again.

    \b
    Example: metatree resume 1f6c9a02 --max-calls 500
    """
    from metatree import resume as go_on
    from metatree_agents.cli._inputs import text_of
    from metatree_agents.cli.commands._run_options import load_options
    from metatree_agents.cli.commands._search import (
        finish,
        parts_for,
        restored_fallbacks,
        suite_parts,
        watched,
        web_parts,
    )
    from metatree_agents.code import relocate

    parts = suite_parts(router)
    limits = budget.limits()
    with where.existing() as opened:
        given = _given(opened, run)
        collects = given.get("returns") == "nodes"
        asked = " ".join(given.get("questions", ()))
        if collects and (file_options := load_options(opened, run)) is not None:
            if answer is not None:
                raise UserError(f"run {run!r} waits for no answer (it lists files): leave --answer out")
            with watched(run, opened) as progress:
                matches, result = relocate(
                    run, opened, router=parts.get("router"), limits=limits, on_event=progress
                )
            files = file_options.cut(matches)
            return finish("files", result, opened, json=json, verbose=verbose, asked=asked, files=files)
        answers = None
        if answer is not None:
            answers = {_waiting_question(opened, run): text_of(answer, what="answer")}
        parts |= web_parts(web)
        with watched(run, opened) as progress:
            parts = parts_for(opened, parts, allow=allow)
            parts["fallbacks"] = restored_fallbacks(given.get("fallbacks") or (), parts["fallbacks"])
            result = go_on(run, tree=opened, answers=answers, limits=limits, on_event=progress, **parts)
        command: Literal["find", "ask"] = "find" if collects else "ask"
        return finish(command, result, opened, json=json, verbose=verbose, asked=asked)


def _last_run(tree: Tree) -> str:
    from metatree import runs as list_runs

    listed = list_runs(tree=tree)
    if not listed:
        raise UserError('this tree has no runs yet: `metatree ask "…"` makes one')
    return listed[0].run_id


def _given(tree: Tree, run_id: str) -> Mapping[str, Any]:
    """Return what a run was begun with; nothing when there is no such run."""
    from metatree import runs as list_runs

    return next((each.given for each in list_runs(tree=tree) if each.run_id == run_id), {})


def _waiting_question(tree: Tree, run: str) -> str:
    from metatree import load_run

    result = load_run(run, tree=tree)
    if result.ended != "waiting":
        raise UserError(f"run {run!r} waits for no answer (it is {result.ended}): leave --answer out")
    return result.detail


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
