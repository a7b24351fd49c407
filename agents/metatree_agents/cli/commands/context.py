"""`metatree context`: the lines that an issue is about, within a number of tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli._inputs import asked_of, named_file
from metatree_agents.cli.commands._trees import TreeOptions, path_inside
from metatree_agents.cli.commands.ask import Issue


def context(
    issue: Issue,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, metavar="N", help="At most so many tokens of text.")
    ] = 4000,
    *,
    where: TreeOptions,
    no_refresh: options.NoRefresh = False,
    json: options.Json = False,
) -> int:
    """Print the lines of the source that an issue is about, best first: whole definitions, each with why.

    What one definition would take more than half of the tokens is given in part. Tokens are counted by the tokenizer of
    Llama 2, which is on this machine and cuts code finer than those of most models.

    \b
    Example: metatree context @issue.txt --tokens 4000 --source ~/src/requests
    """
    from metatree_agents.basis import basis_of
    from metatree_agents.cli.commands._search import note_stale
    from metatree_agents.context import context_for

    text, file = asked_of(issue, what="issue"), named_file(issue)
    with where.ready(refresh=not no_refresh) as opened:
        own = path_inside(file, opened) if file else None
        found = context_for(text, opened, tokens, accept=None if own is None else lambda node: node.id != own)
        basis = basis_of(opened) if json or (no_refresh and opened.stale()) else None
        if json:
            output.write_json("context", {**asdict(found), "basis": basis})
        elif found.text:
            output.write(
                [
                    "".join(c if c == "\t" else output.visible(c) for c in line)
                    for line in found.text.split("\n")
                ]
            )
    note_stale(basis)
    if found.detail:
        output.note(output.visible(found.detail))
    if found.ranges:
        rest = f"; next: {', '.join(f'{x.path}:{x.start_line}-{x.end_line}' for x in found.left_out[:3])}"
        said = f"{found.tokens:,} of {tokens:,} tokens by {found.counted_by}"
        output.note(f"{said}{output.visible(rest) if found.left_out else ''}")
    return FOUND if found.ranges else NOTHING
