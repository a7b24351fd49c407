"""`metatree ask --service`: a question to a service instead of a tree of this machine."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from typing import Any, Final

from metatree.errors import UserError
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FAILED, FOUND, NOTHING, WAITING
from metatree_agents.cli.commands.service.worker import SECRET

_CODES: Final = {"Waiting": WAITING, "Failed": FAILED, "Stopped": NOTHING}


def ask_service(
    server: str, user: str | None, question: str, trees: str | None, topic: str | None, *, json: bool
) -> int:
    """Ask a service, wait for the answer and print it with its sources; return the code that the command ends with.

    Args:
        trees: names of the trees to search, parted by commas; None for all that the user may ask.
        topic: where to ask on; None for a new topic.

    Raises:
        UserError: who asks is not said, or the service refuses.
    """
    from metatree_agents.service.engine.client import ServiceClient, ServiceRefused

    secret = os.environ.get(SECRET, "")
    if not user or not secret:
        missing = f"put the secret or an API key into {SECRET}" if user else "say with --user who asks"
        raise UserError(f"a service has to know who asks: {missing}")
    names = None if trees is None else [name.strip() for name in trees.split(",") if name.strip()]
    words = re.findall(r"\w+", question.lower())[:6]
    named = topic or "-".join([*words, secrets.token_hex(4)])[-100:]

    async def asked() -> dict[str, Any]:
        async with ServiceClient(server, user, secret) as client:
            body: dict[str, Any] = {"Topic": named, "User": user, "Query": question}
            if names is not None:
                body["Trees"] = names
            added = await client.call("POST", "add-query", body=body)
            output.note(output.visible(f"asked in the topic {named}"))
            while True:
                answer: dict[str, Any] = await client.call(
                    "GET", "check-query", Topic=named, Seq=added["Seq"]
                )
                if answer["Status"] in ("Done", "Failed", "Stopped", "Waiting"):
                    return answer

    try:
        query = asyncio.run(asked())
    except ServiceRefused as exc:
        raise UserError(str(exc)) from None
    answered = query["Status"] == "Done" and query["End"] in (None, "answered")
    if json:
        output.write_json("ask --service", _shown(query))
    else:
        output.write(_lines(query))
    return FOUND if answered else _CODES.get(query["Status"], NOTHING)


def _shown(query: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": query["Topic"],
        "seq": query["Seq"],
        "status": query["Status"],
        "answer": query["Answer"] or [],
        "end": query["End"],
        "open": query["Open"],
        "sources": query["Sources"] or [],
        "closest": query["Closest"],
        "asked": query["Asked"],
    }


def _lines(query: dict[str, Any]) -> list[str]:
    lines = [output.visible(line) for part in query["Answer"] or [] for line in (*part.split("\n"), "")]
    if query["Status"] == "Failed":
        lines.append("No engine could answer.")
    if query["Status"] == "Waiting":
        lines += [
            output.visible(f"It asks: {ask['Question']}") for ask in query["Asked"] if ask["Answer"] is None
        ]
    named = query["Sources"] or query["Closest"]
    if named:
        lines.append("Sources:" if query["Sources"] else "Closest:")
    for each in named:
        place = each.get("Path") or each.get("Place") or each.get("Node") or ""
        tree = f"{each['Tree']}: " if each.get("Tree") else ""
        at = f":{each['Lines'][0]}" if each.get("Lines") else ""
        title = each.get("Title") or ""
        lines.append(output.visible(f"  {tree}{place}{at}" + (f"  {title}" if title != place else "")))
    return lines
