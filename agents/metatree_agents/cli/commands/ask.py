"""`metatree ask`, `find` and `files`: search a tree for an answer, for nodes, for the files to edit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metatree.errors import UserError
from metatree.protocols import SURE
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._inputs import asked_of, named_file, one_question, plain, texts_of
from metatree_agents.cli.commands._trees import TreeOptions, node_named, path_inside

if TYPE_CHECKING:
    from metatree import Tree

_FORMS = "- reads standard input, @FILE a file; @@… is a text that begins with @."
Questions = Annotated[list[str], typer.Argument(metavar="QUESTION", help=f"What to find out; {_FORMS}")]
Asked = Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help=f"What to find out; {_FORMS}")]
Issue = Annotated[str, typer.Argument(metavar="ISSUE", help=f"Text of the issue; {_FORMS}")]


def ask(
    questions: Asked = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            metavar="N",
            help="At most N sources for each answer, and passages for what stays open.",
        ),
    ] = None,
    *,
    where: TreeOptions,
    start: options.Start = None,
    router: options.Router = None,
    context: options.Context = "",
    run: options.RunId = None,
    budget: options.Budget,
    no_refresh: options.NoRefresh = False,
    human: Annotated[
        bool,
        typer.Option(
            "--human",
            help="Put what the tree does not answer to a person; `metatree questions` lists it.",
        ),
    ] = False,
    sure: Annotated[
        float,
        typer.Option(
            "--sure",
            min=0.0,
            max=1.0,
            metavar="P",
            help="Claim only what is at least so likely to be right (0.5: more likely than not).",
        ),
    ] = SURE,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, metavar="S", help="With --human: wait S seconds for `metatree answer`."
        ),
    ] = 0.0,
    allow: options.Allow = None,
    web: options.Web = None,
    service: Annotated[
        str | None,
        options.option(
            "--service",
            "URL",
            "Ask this service instead of a tree here, as --user, with the secret or API key in METATREE_SECRET.",
        ),
    ] = None,
    user: Annotated[str | None, options.option("--user", "NAME", "With --service: who asks.")] = None,
    trees: Annotated[
        str | None,
        options.option(
            "--trees", "NAME,…", "With --service: the trees to ask; by default all that the user may ask."
        ),
    ] = None,
    topic: Annotated[
        str | None,
        options.option(
            "--topic",
            "NAME",
            "With --service: the topic to ask on in, a new one by default; without QUESTION its answer is printed.",
        ),
    ] = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """Answer questions from the tree of the current folder, with the sources.

    Of a question that they do not answer it says so, and prints the passages that come closest: the lines of each that
    matter, with --verbose all of them.

    The tree is built first when it is missing, and refreshed when its source has changed. With --human the search
    also reads and writes the blackboard of the tree.

    A tool that changes something is called when --allow names it, when it was permitted for good (`metatree plugins
    --permissions`), or when the person says yes: at the terminal, or with `metatree answer` to the question that the
    run then waits with.

    With --web, pages that a search engine finds for what the tree does not answer are fetched, kept as nodes with where
    they came from, and searched. Private addresses are refused unless METATREE_WEB_ALLOW names their hosts.

    With --service, a service of others (`metatree serve`) is asked instead; the code is 1 when it has no answer. Ctrl-C
    leaves it searching; --topic NAME without a question waits for the answer and prints it.

    \b
    Example: metatree ask "Where are redirects followed?" --source ~/src/requests
    """
    from metatree import Blackboard, search
    from metatree_agents.cli.commands._permits import has_changing
    from metatree_agents.cli.commands._search import (
        finish,
        new_run_id,
        parts_for,
        suite_parts,
        watched,
        web_parts,
    )
    from metatree_agents.cli.printing.answers import with_sources

    texts = one_question(texts_of(questions or [], what="question"))
    _note_folders(texts)
    if len(texts) < len(questions or []):
        output.note(
            f"read as one question: {output.visible(texts[0])!r}; put each of several in quotation marks"
        )
    if service is not None:
        from metatree_agents.cli.commands.service.asking import ask_service

        if where != TreeOptions() or len(texts) > 1:
            raise UserError(
                "--service takes one question, and neither --source nor --tree: it has its own trees"
            )
        if not texts and topic is None:
            raise UserError("say what to find out, or with --topic the topic whose last answer is printed")
        return ask_service(service, user, texts[0] if texts else None, trees, topic, json=json)
    if not texts:
        raise UserError('say what to find out: `metatree ask "Where are redirects followed?"`')
    if (user, trees, topic) != (None, None, None):
        raise UserError("--user, --trees and --topic are for --service URL")
    parts = {**suite_parts(router), **web_parts(web)}
    run_id = run or new_run_id()
    with where.ready(refresh=not no_refresh) as opened:
        with watched(run_id, opened) as progress:
            result = search(
                texts,
                start and node_named(opened, start),
                tree=opened,
                context=plain(context, what="context"),
                sure=sure,
                limits=budget.limits(),
                run_id=run_id,
                on_event=progress,
                blackboard=Blackboard(opened) if human or has_changing(opened) else None,
                wait=wait,
                **parts_for(opened, parts, allow=allow, human=human),
            )
        return finish(
            "ask",
            with_sources(result, k),
            opened,
            json=json,
            verbose=verbose,
            asked=" ".join(texts),
            under=start,
            refreshed=not no_refresh,
        )


def find(
    questions: Questions,
    k: options.Count = 5,
    *,
    where: TreeOptions,
    kind: options.Kinds = None,
    start: options.Start = None,
    router: options.Router = None,
    context: options.Context = "",
    run: options.RunId = None,
    budget: options.Budget,
    no_refresh: options.NoRefresh = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """List the nodes that fit the questions best, without reading an answer out of them.

    Of a file, the part that says most comes first: a definition with its lines; the file itself where the question is
    about it, or its parts share what speaks for it. With --verbose, all that speaks for each is said.

    \b
    Example: metatree find "proxy environment variables" -k 10 --source ~/src/requests
    """
    from metatree import search
    from metatree_agents.cli.commands._search import (
        finish,
        new_run_id,
        suite_parts,
        watched,
        with_evidence,
    )

    texts = texts_of(questions, what="question")
    parts = suite_parts(router)
    run_id = run or new_run_id()
    with where.ready(refresh=not no_refresh) as opened:
        _check_kinds(opened, kind or ())
        with watched(run_id, opened) as progress:
            result = search(
                texts,
                start and node_named(opened, start),
                tree=opened,
                returns="nodes",
                accept=kind or None,
                k=k,
                context=plain(context, what="context"),
                limits=budget.limits(),
                run_id=run_id,
                on_event=progress,
                **with_evidence(parts, opened),
            )
        return finish(
            "find",
            result,
            opened,
            json=json,
            verbose=verbose,
            asked=" ".join(texts),
            under=start,
            refreshed=not no_refresh,
        )


def _note_folders(texts: Sequence[str]) -> None:
    """Say how a folder is named that stands behind a question, as other commands take it."""
    for text in texts[1:]:
        if " " not in text and Path(text).is_dir():
            output.note(
                f"{output.visible(text)} is asked as a question: --source {output.word(text)} searches that folder"
            )


def _check_kinds(tree: Tree, wanted: Sequence[str]) -> None:
    """Raise `UserError` for a kind that no node of the tree has: nothing would be found, whatever is asked."""
    known = tree.info()["kinds"] if wanted else {}
    for kind in wanted:
        if known and kind not in known:
            of_code = "; functions, classes and methods are of the kind definition"
            hint = of_code if kind in ("function", "class", "method") and "definition" in known else ""
            raise UserError(f"no node of this tree is of the kind {kind!r}: it has {', '.join(known)}{hint}")


def files(
    issue: Issue,
    k: Annotated[
        int,
        options.option(
            "-k",
            "N|auto",
            "How many to list; `auto` for those that fit nearly as well as the best, up to five.",
            parser=options.count_or_auto,
        ),
    ] = 5,
    *,
    where: TreeOptions,
    router: options.Router = None,
    run: options.RunId = None,
    budget: options.Budget,
    no_refresh: options.NoRefresh = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> int:
    """List the files that an issue wants edited, best first, with the definitions in them.

    Paths are relative to the source. With --verbose, all that speaks for each is said.

    \b
    Example: metatree files @issue.txt --source ~/src/requests --json
    """
    from metatree_agents.cli.commands._run_options import FilesOptions, save_options
    from metatree_agents.cli.commands._search import finish, new_run_id, suite_parts, watched
    from metatree_agents.code import locate

    text, file = asked_of(issue, what="issue"), named_file(issue)
    parts = suite_parts(router)
    run_id = run or new_run_id()
    with where.ready(refresh=not no_refresh) as opened:
        with watched(run_id, opened) as progress:
            own = path_inside(file, opened) if file else None
            file_options = FilesOptions(k, own)
            save_options(opened, run_id, file_options)
            matches, result = locate(
                text,
                opened,
                file_options.most,
                router=parts.get("router"),
                limits=budget.limits(),
                run_id=run_id,
                on_event=progress,
            )
        files = file_options.cut(matches)
        return finish(
            "files",
            result,
            opened,
            json=json,
            verbose=verbose,
            asked=text,
            files=files,
            refreshed=not no_refresh,
        )
