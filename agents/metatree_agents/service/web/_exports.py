"""A thread as a file: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Literal

from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.http.routes import answered
from metatree_agents.service.openai.contents import content_of, inert_said
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.statuses import UNSETTLED

Form = Literal["md", "json"]
TYPES: Final[dict[Form, str]] = {"md": "text/markdown; charset=utf-8", "json": "application/json"}


def exported(topic: str, queries: Sequence[Query], form: Form) -> str:
    """Return a thread as the text of a file; JSON has all that the API says of each query."""
    if form == "json":
        rows: list[dict[str, Any]] = [{**answered(query), "Asked at": stamp(query.at)} for query in queries]
        return json.dumps({"Topic": topic, "Queries": rows}, ensure_ascii=False, indent=2) + "\n"
    parts = []
    for query in queries:
        said = f"({query.status.lower()})" if query.answer is None else content_of(query)
        text = said if query.status not in UNSETTLED else "(not answered yet)"
        quoted = "\n".join(f"> {line}".rstrip() for line in inert_said(query.text.strip()).splitlines())
        parts.append(f"## Question {query.seq}\n\n{quoted}\n\n*Asked {stamp(query.at)} UTC*\n\n{text}\n")
    return "\n".join(parts)


def file_name(topic: str, form: Form) -> str:
    """Return a name for the file that is one everywhere.

    Example:
        >>> file_name("Who pays? / \\u00dc", "md")
        'Who-pays.md'
    """
    return (re.sub(r"[^A-Za-z0-9]+", "-", topic).strip("-")[:80] or "topic") + f".{form}"
