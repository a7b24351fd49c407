"""`metatree ask --service`: a question to a service instead of a tree of this machine."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Iterator
from shlex import quote
from typing import Any, Final
from urllib.parse import urlencode

from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, NOTHING, WAITING, Cancelled
from metatree_agents.cli.commands.service.worker import SECRET
from metatree_agents.cli.printing.results import quoted_lines

_CODES: Final = {"Waiting": WAITING, "Failed": FAILED, "Stopped": NOTHING}


def ask_service(
    server: str, user: str | None, question: str | None, trees: str | None, topic: str | None, *, json: bool
) -> int:
    """Ask a service, wait for the answer and print it with its sources; return the code that the command ends with.

    Args:
        question: what to ask; None to print the last answer of the topic, which is waited for.
        trees: names of the trees to search, parted by commas; None for all that the user may ask.
        topic: where to ask on; None for a new topic.

    Raises:
        UserError: who asks is not said, or the service refuses.
        Cancelled: Ctrl-C was pressed while the service searches.
    """
    from metatree_agents.service.accounts.keys import PREFIX
    from metatree_agents.service.engine.client import ServiceClient, ServiceRefused, WrongCredentials

    secret = os.environ.get(SECRET, "")
    if not secret:
        raise UserError(f"a service has to know who asks: put the secret or an API key into {SECRET}")
    if not user and not secret.startswith(PREFIX):
        raise UserError("a service has to know who asks: say with --user whose secret it is")
    names = None if trees is None else [name.strip() for name in trees.split(",") if name.strip()]
    words = re.findall(r"\w+", (question or "").lower())[:6]
    named = topic or "-".join([*words, secrets.token_hex(4)])[-100:]
    whose = f" --user {quote(user)}" if user else ""
    later = f"metatree ask --service {quote(server)}{whose} --topic {quote(named)}"
    page = _page(server, named)
    waits = question is None

    async def asked() -> dict[str, Any]:
        nonlocal waits
        async with ServiceClient(server, user or "", secret) as client:
            # A key says whose it is.
            asker = user or (await client.call("GET", "login")).get("User")
            if not asker:
                raise UserError("this service is of an older version: say with --user whose key it is")
            if question is None:
                thread = await client.call("GET", "get-topic-thread", Topic=named)
                if not thread:
                    raise UserError(f"there is no topic {named!r}")
                seq = thread[-1]["Seq"]
            else:
                body: dict[str, Any] = {"Topic": named, "User": asker, "Query": question}
                if names is not None:
                    body["Trees"] = names
                added = await client.call("POST", "add-query", body=body, Searching="1")
                seq, waits = added["Seq"], True
                output.note(output.visible(f"asked in the topic {named}: {page}"))
                if added.get("Searching") is False:
                    output.note(
                        "nobody is searching: no engine is connected; the question waits until one is"
                    )
            while True:
                answer: dict[str, Any] = await client.call("GET", "check-query", Topic=named, Seq=seq)
                if answer["Status"] in ("Done", "Failed", "Stopped", "Waiting"):
                    return answer

    try:
        query = asyncio.run(asked())
    except KeyboardInterrupt as interrupt:
        if not waits:
            raise
        raise Cancelled(
            f"cancelled here; the service goes on: `{later}` prints the answer when it is there"
        ) from interrupt
    except WrongCredentials:
        who = repr(user) if user else "anybody"
        raise UserError(
            f"the service at {server} does not accept {who} with this secret or key: put an"
            f" API key into {SECRET} (its page makes one, at *API keys*), or ask an administrator for a new secret"
            f" (`metatree service users add {user or 'NAME'}`, which ends the one before)"
        ) from None
    except ServiceRefused as exc:
        raise UserError(str(exc)) from None
    answered = query["Status"] == "Done" and query["End"] in (None, "answered")
    if json:
        output.write_json("ask --service", _shown(query, server))
    else:
        output.write(_lines(query, server))
    return FOUND if answered else _CODES.get(query["Status"], NOTHING)


def _page(server: str, topic: str) -> str:
    return f"{server.rstrip('/')}/thread?{urlencode({'topic': topic})}"


def _shown(query: dict[str, Any], server: str) -> dict[str, Any]:
    def all_of(key: str) -> list[dict[str, Any]]:
        return [_named(each, query, server) for each in query[key] or ()]

    return {
        "topic": query["Topic"],
        "seq": query["Seq"],
        "status": query["Status"],
        "question": query["Query"],
        "answer": query["Answer"] or [],
        "cited": "\n\n".join(_cited(query)),
        "end": query["End"],
        "open": query["Open"],
        "notes": query.get("Notes") or [],
        "sources": all_of("Sources"),
        "closest": all_of("Closest"),
        "asked": [_named(each, query, server) for each in query["Asked"]],
    }


def _named(given: dict[str, Any], query: dict[str, Any], server: str) -> dict[str, Any]:
    """Return what the wire says, under its names and under those that `ask --json` has, with a link to the page."""
    from metatree_agents.service.openai.contents import node_link

    plain = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): value for name, value in given.items()}
    if "node" in plain:
        plain["place"] = plain.get("place") or plain.get("path") or plain["node"]
        plain["link"] = node_link(server, plain["node"], query["Topic"], query["Seq"], plain.get("tree"))
    return {**given, **plain}


def _cited(query: dict[str, Any], *, plain: bool = False) -> Iterator[str]:
    """Yield the paragraphs of an answer, with the numbers of their sources behind them.

    Args:
        plain: whether what is quoted is shown without its markup.
    """
    from metatree_memory_tools.text.readable import readable
    from metatree_routers.query.entry import entry_text

    from metatree_agents.service.openai.answer_segments import (
        answer_segments,
        numbers_of,
        quoted_sources,
        quotes_of,
        with_marks,
    )

    pages = {at for at, each in enumerate(quoted_sources(query["Sources"])) if each.get("Pages")}
    pieces = answer_segments(query["Answer"] or (), quotes_of(query["Sources"]))
    for piece, number in with_marks(pieces, numbers_of(query["Sources"])):
        text = readable(piece.text) if plain and piece.kind == "words" else piece.text
        if plain and piece.quote in pages:
            text = entry_text(query["Query"], text)
        yield f"{text} [{number}]" if number else text


def _lines(query: dict[str, Any], server: str) -> Iterator[str]:
    for note in query.get("Notes") or ():
        yield output.styled(output.visible(note), "dim")
    for paragraph in _cited(query, plain=True):
        yield from (output.visible(line) for line in (*paragraph.split("\n"), ""))
    if query["Status"] == "Failed":
        yield "No engine could answer."
    if query["Status"] == "Stopped":
        from metatree_agents.service.queue.models import STOPPED, STOPPED_WITH

        yield STOPPED_WITH if query["Answer"] else STOPPED
    if query["Status"] == "Waiting":
        for ask in query["Asked"]:
            if ask["Answer"] is None:
                yield output.visible(f"It asks: {ask['Question']}")
        yield output.visible(f"Answer it on its page: {_page(server, query['Topic'])}")
    if query["Sources"]:
        yield output.styled("Sources", "bold")
        for each in query["Sources"]:
            yield from _source(each, query, server)
    elif query["Closest"]:
        yield "Closest passages:"
        for each in query["Closest"]:
            yield from _source(each, query, server, quote=True)
    elif query["Status"] == "Done" and query["End"] == "nothing":
        yield "No passage comes close: try other words."


def _source(
    given: dict[str, Any], query: dict[str, Any], server: str, *, quote: bool = False
) -> Iterator[str]:
    from metatree_agents.service.openai.closest_passages import (
        place_of,
        said_by_of,
        said_in_words,
        shown_quote,
    )

    shown = _named(given, query, server)
    place, title, by = place_of(given), shown.get("title") or "", said_in_words(said_by_of(given)).text
    number = f"[{shown['number']}] " if shown.get("number") else ""
    tree = f"{shown['tree']}: " if shown.get("tree") else ""
    # Of what a person said the place is an id that nobody knows.
    named = (
        f"{title} ({by})" if by else place + (f"  {title}" if title not in ("", shown.get("place")) else "")
    )
    yield f"  {number}{output.styled(output.visible(tree + named), 'cyan')}"
    if quote and given.get("Quote"):
        yield from quoted_lines(shown_quote(given).split("\n"))
    if shown.get("link"):
        yield output.styled(output.visible(f"      {shown['link']}"), "dim")
