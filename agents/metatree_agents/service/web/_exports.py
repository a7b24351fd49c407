"""A thread as a file: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal

from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.http.routes import answered
from metatree_agents.service.openai.contents import content_of, inert_said
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.recommendations import PLAIN, Recommendation
from metatree_agents.service.queue.statuses import SAID, UNSETTLED

Form = Literal["md", "json"]
TYPES: Final[dict[Form, str]] = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
_STEPS: Final = 50
"""How many steps of a search Markdown has."""


def exported(
    topic: str,
    title: str,
    queries: Sequence[Query],
    recommended: Mapping[int, Sequence[Recommendation]],
    form: Form,
) -> str:
    """Return a thread as the text of a file; JSON has all that the API says of each query.

    Args:
        title: what the topic is called.
        recommended: what was said of the answers and stands, by the numbers of their queries.
    """
    if form == "json":
        rows: list[dict[str, Any]] = [
            {
                **answered(query),
                "AskedBy": query.by,
                "AskedAt": stamp(query.at),
                "Recommended": [_row(each) for each in recommended.get(query.seq, ())],
            }
            for query in queries
        ]
        whole = {"Topic": topic, "Title": title, "Queries": rows}
        return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
    # Topics may have the same title.
    begun = f", begun {stamp(queries[0].at)} UTC" if queries else ""
    parts = [f"# {_line(title)}\n\n*Topic {_line(topic)}{begun}*\n"]
    for query in queries:
        if query.status in UNSETTLED:
            text = "(not answered yet)"
        else:
            text = f"({SAID[query.status]})" if query.answer is None else content_of(query)
        # Lines as Markdown has them, and `inert_said`: with others a fence would end early.
        lines = re.split(r"\r\n?|\n", inert_said(query.text.strip()))
        quoted = "\n".join(f"> {line}".rstrip(" ") for line in lines)
        asked = f"*Asked by {_line(query.by)}, {stamp(query.at)} UTC*"
        blocks = [f"## Question {query.seq}", quoted, asked, _below(text)]
        said = [_said(each) for each in reversed(recommended.get(query.seq, ()))]
        if said:
            blocks.append("\n".join(said))
        if not query.ending.answered and query.think:
            steps = query.think[:_STEPS]
            more = len(query.think) - len(steps)
            steps = [f"{number}. {_line(step)}" for number, step in enumerate(steps, 1)]
            blocks += [
                "What the search did:",
                "\n".join([*steps, *([f"\nand {more:,} more"] if more else [])]),
            ]
        parts.append("\n\n".join(blocks) + "\n")
    return "\n".join(parts)


def _below(text: str) -> str:
    """Return Markdown with its headings below that of a question; what is between fences stays."""
    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    deeper = (re.sub(r"^(?=#{1,4} )", "##", part, flags=re.MULTILINE) for part in parts[::2])
    return "".join(piece for pair in zip_longest(deeper, parts[1::2], fillvalue="") for piece in pair)


def _row(one: Recommendation) -> dict[str, Any]:
    return {
        "Type": one.type,
        "By": one.on_behalf_of,
        "At": stamp(one.at),
        "Fragment": one.fragment,
        "Comment": one.comment,
    }


def _said(one: Recommendation) -> str:
    text = one.comment or ("" if one.type in ("Promote Answer", "Flag as Off Topic") else one.fragment)
    return f"- {PLAIN.get(one.type, one.type)}, says {_line(one.on_behalf_of)}, {stamp(one.at)} UTC" + (
        f": {_line(text)}" if text else ""
    )


def _line(text: str) -> str:
    """Return a text as one line of Markdown that shows it as it is."""
    return re.sub(r"[\\`*_\[\]<>#|~!]", r"\\\g<0>", " ".join(text.split()))


def file_name(title: str, form: Form, begun: float | None = None) -> str:
    """Return a name for the file that is one everywhere.

    Args:
        begun: when the topic was; told where others may have its title.

    Example:
        >>> file_name("Who pays? / \\u00dc", "md"), file_name("Who pays?", "md", 0.0)
        ('Who-pays.md', 'Who-pays-1970-01-01T00-00-00.md')
    """
    named = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:80] or "topic"
    return f"{named}{'' if begun is None else '-' + stamp(begun).replace(':', '-')}.{form}"
