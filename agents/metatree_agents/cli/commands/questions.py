"""`metatree questions` and `answer`: what searches ask a person, and the person's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli.commands._trees import TreeOptions

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.blackboard import Item


def questions(
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """List the questions that searches have put to a person and nobody has answered, the oldest first.

    \b
    Example: metatree questions --source ~/src/requests
    """
    from metatree import Blackboard

    with where.existing() as opened:
        listed = Blackboard(opened).open_questions()
    if json:
        rows = [
            {"id": i.id, "question": str(i.get_value("question")), "run": i.run, "asked_at": i.at}
            for i in listed
        ]
        output.write_json("questions", {"questions": rows})
    elif listed:
        output.write(
            f"{output.visible(item.id)}  {output.visible(str(item.get_value('question')))}" for item in listed
        )
        output.note("answer one with: metatree answer ID TEXT")
    else:
        output.note("no question is open")
    return FOUND if listed else NOTHING


def answer(
    question: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the question, or its beginning; `metatree questions` lists them."
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The answer; - or @FILE too.")],
    *,
    where: TreeOptions,
    router: options.Router = None,
    budget: options.Budget,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """Answer a question that a search has put to a person; the search goes on.

    If it waits for the answer in another process, it goes on there. Otherwise it is taken up here, and what it finds
    is printed as `metatree resume` prints it.

    \b
    Example: metatree answer 1f6c9a02:q9 "In the second drawer" --source ~/src/requests
    """
    from metatree import Blackboard
    from metatree_agents.cli._inputs import text_of
    from metatree_agents.cli.commands.runs import resume

    reply = text_of(text, what="answer")
    with where.existing() as opened:
        board = Blackboard(opened)
        elsewhere = board.listeners() > 0
        item = board.answer(question, reply)
        here = not elsewhere and _run_waits(opened, item)
    if here:
        return resume(
            item.run,
            where=where,
            router=router,
            budget=budget,
            json=json,
            verbose=verbose,
        )
    if elsewhere and item.run:
        run = output.word(item.run)
        output.note(f"answered; run {run} goes on where it waits (if not: metatree resume {run})")
    else:
        output.note("answered")
    return FOUND


def _run_waits(tree: Tree, item: Item) -> bool:
    """Say whether the run that asked is in the journal of this tree and stopped to wait."""
    from metatree import load_run
    from metatree.errors import UserError

    if not item.run:
        return False
    try:
        return load_run(item.run, tree=tree).ended == "waiting"
    except (
        UserError
    ):  # there is none, or it is that of an agent of the planner, whose worker hears the answer
        return False
