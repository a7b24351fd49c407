"""One query, answered by a search: what was said before goes in as context, its steps and sources come out."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from textwrap import shorten
from typing import Any, Final

from metatree_memory_tools.text.document_place import document_place
from metatree_routers import text_evidence
from metatree_routers.query.key_terms import NOTABLE, key_terms_of
from metatree_routers.query.terms import expand, raw_tokens

from metatree import Limits, Tree, aresume, asearch, load_run
from metatree.errors import LeaseLost, MetatreeError, RunExists, TransientError, UnknownRun
from metatree.notes.notes import said_by
from metatree.result import PersonQuestion, QuestionAnswer, SearchResult, TraceEntry
from metatree.trees.layer import ROOT, Layer
from metatree.trees.line_ranges import without_shared_lines
from metatree_agents.service.engine._at_limit import same_question, with_person
from metatree_agents.service.engine._corrections import corrections_of
from metatree_agents.service.engine._follow_up import FollowUp, follow_up, same_subject
from metatree_agents.service.engine._origins import place_in, with_origins
from metatree_agents.service.engine._several import READ_AS
from metatree_agents.service.engine.router_state import without_error
from metatree_agents.service.queue.models import (
    ABOUT_ANOTHER,
    ABOUT_BEFORE,
    NARROWED_NOTHING,
    NOT_SAID,
    End,
    Ending,
    EngineAnswer,
    EngineQuery,
)

NOT_IN_SOURCE: Final = "not in the source"
_EARLIER_CHARS: Final = 160
CUT_OFF: Final = {
    "failed": "The search failed before an answer was found; the log of the engine says why.",
    "limit": "No answer was found before the search reached its limit.",
}
"""What an asker reads of a search that was cut off: what failed may name servers that are not theirs to know."""
_NUMBERED: Final = re.compile(r"(?:page|slide|line)s? \d+(?:[-–]\d+)?")
"""How parts without a heading are called."""
_log = logging.getLogger("metatree.engine")
HELD_S = 1.0
"""How often an engine looks what became of a run that another one holds."""
AWAY = "TransientError: PostgreSQL"
"""How the detail of a search begins that lost the database of its journal."""
RULED_OUT = 12
"""How many of the branches that were ruled out at one node are reported to those who watch."""
PASSAGES: Final = 30
"""How many passages that come close are given back."""
QUOTE_CHARS: Final = 4_000
"""How much of each: it may be the whole text of a node."""
_NEAREST: Final = 2
"""How many passages are shown for the words of a question by itself, where what was found for its subject was wrong."""
SAID_AMONG: Final = 30
"""Among how many nodes that fit a question it is looked for what a person said."""
FEW_WORDS: Final = 0.5
"""A question whose words weigh less (`key_terms_of`) names nothing: `and when does that end?` has 0.2."""
SOME_WORDS: Final = 1.2
"""The same for one that says `it`: `how is it switched off again?` has 0.95."""
REFERRING: Final = frozenset(
    ["it", "its", "that", "this", "these", "those", "they", "them", "their", "one", "ones"]
)
SECTION_LINES: Final = 12
SECTION_CHARS: Final = 700
"""Up to how much text a section is shown whole in place of a passage of it: as much as people are shown of one."""
_TURNS = 10
_JOURNAL_FACT = "journal-name"
_TURN_CHARS = 1_500


def run_id_of(query: EngineQuery) -> str:
    """Return the name of the run of a query, the same in every engine: one that takes over goes on where it ended.

    Without a name that the service gave, it is a hash, which a query of a later topic of the same name may share.
    """
    if query.run is not None:
        return query.run
    return "query-" + sha256(f"{query.topic}\0{query.seq}\0{query.text}".encode()).hexdigest()[:20]


async def answer_query(
    tree: Tree,
    query: EngineQuery,
    *,
    parts: Mapping[str, Any],
    limits: Limits | None = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    on_event: Callable[[TraceEntry], None] | None = None,
) -> EngineAnswer:
    """Search a tree for the answer to a query; a run of it that was cut off goes on where it was.

    Args:
        tree: the memory.
        query: the query.
        parts: router and reader and so on, as for `search`.
        limits: bounds of the run.
        on_step: called with each step, as JSON for those who watch.
        on_event: called with each step, as the trace has it.
    """

    def report(entry: TraceEntry) -> None:
        if on_event is not None:
            on_event(entry)
        if on_step is not None and (step := step_of(tree, entry)):
            on_step(step)

    given = {**parts, "on_event": report}
    taken = follow_up(query.text, _before_it(query))
    # The run goes by what was asked.
    asked = query if taken is None else replace(query, text=taken.text, run=run_id_of(query))
    while True:
        try:
            result = await _searched(tree, asked, given, limits)
            if not _is_cut_off(tree, result):
                reply = _with_before(tree, query, said_of(tree, result))
                reply = reply if taken is None else _as_taken(tree, query, taken, result, reply)
                if unknown := _unknown_parts(tree, query):
                    ending = replace(reply.ending, notes=[*unknown, *reply.ending.notes][:PASSAGES])
                    reply = replace(reply, ending=ending)
                return with_person(asked, result, reply, parts)
        except (LeaseLost, RunExists):
            pass  # another engine is at work on it, or its machine died and its hold runs out
        except TransientError:
            if tree.shared is None:
                raise
        await asyncio.sleep(HELD_S)


def _is_cut_off(tree: Tree, result: SearchResult) -> bool:
    """Say whether a search ended since what it shares with other machines was out of reach: then it goes on later."""
    return tree.shared is not None and result.ended == "failed" and result.detail.startswith(AWAY)


async def _searched(
    tree: Tree, query: EngineQuery, given: Mapping[str, Any], limits: Limits | None
) -> SearchResult:
    run_id, left = run_id_of(query), list(query.told)
    try:
        result = load_run(run_id, tree=tree)
    except UnknownRun:
        start, context = _narrowed(tree, query)
        result = await asearch(
            query.text,
            tree=tree,
            start_node=start,
            context=context,
            run_id=run_id,
            limits=limits or Limits(),
            **given,
        )
    else:
        if result.ended not in ("answered", "exhausted", "waiting"):
            result = await aresume(run_id, tree=tree, limits=limits, **given)
    while result.ended == "waiting" and (answers := _person_answers(tree, result.asks, left)):
        result = await aresume(run_id, tree=tree, limits=limits, answers=answers, **given)
    return result


def _person_answers(
    tree: Tree, asks: Sequence[PersonQuestion], left: list[Mapping[str, Any]]
) -> dict[str, str]:
    """Return a person's answers to these questions, and take them out of what is left.

    What a person knows is taken by whatever run asks for it. A permission is for the very call that was asked for, so
    it counts only in the journal that asked.
    """
    answers: dict[str, str] = {}
    for ask in asks:
        for one in left:
            same = same_question(one["Question"], ask.question) and one.get("Answer") is not None
            if same and (ask.about == "question" or one["Key"] == _key(tree, ask)):
                answers[ask.question] = one["Answer"]
                left.remove(one)
                break
    return answers


def _key(tree: Tree, ask: PersonQuestion) -> str:
    """Return what a question of a run goes by: the journal that it is in, and its number there."""
    if tree.shared is not None:
        return f"shared:{ask.id}"  # the journal of all machines of this service
    layer = Layer(tree.memory)
    with tree.memory.transaction():
        name = layer.fact(_JOURNAL_FACT)
        if name is None:
            layer.set_fact(_JOURNAL_FACT, name := secrets.token_hex(8))
    return f"{name}:{ask.id}"


def said_of(tree: Tree, result: SearchResult) -> EngineAnswer:
    """Return a result in paragraphs, with the thinking of its search and where each answer comes from."""
    # Spaces before a first line are those of code.
    # What a model says in words of its own has its numbers within; what is quoted gets them where it is shown.
    quoted = all(map(_is_quoted, result.answers))
    text = _quotes_apart(result) if quoted else result.cited or result.answer
    answer = [part.strip("\n").rstrip() for part in text.split("\n\n") if part.strip()]
    doubtful = [each for each in result.answers if not each.verified]
    if answer:
        answer += [
            f"Earlier ({said.at}): {shorten(said.quote, _EARLIER_CHARS, placeholder=' …')}"
            for each in result.answers
            for said in each.earlier[:1]
        ]
    if answer and doubtful:
        of = "" if len(result.answers) == 1 else ": " + "; ".join(each.question for each in doubtful)
        answer.append(f"({NOT_IN_SOURCE}{of})")
    if not answer and result.ended in CUT_OFF:
        _log.warning("run %s ended early: %s", result.run_id, result.detail)
        answer = [CUT_OFF[result.ended]]
    sources = [
        {
            "Node": quote.node or None,
            "Title": _titled(tree, quote.node, quote.title),
            "Quote": quote.quote,
            "Path": _path(tree, quote.node),
            "Number": quote.number,
            "SaidBy": _said_by(tree, quote.node),
            "Place": quote.place or None,
            "Lines": None if quote.lines is None else list(quote.lines),
            "Pages": None if quote.pages is None else list(quote.pages),
            **_in_document(tree, quote.node),
        }
        for each in result.answers
        for quote in each.sources
    ]
    sources = with_origins(tree, sources)
    ending = _ending_of(tree, result)
    if answer and sources:
        ending = replace(ending, notes=[*corrections_of(tree, sources), *ending.notes][:PASSAGES])
    think = [step["Text"] for entry in result.trace if (step := step_of(tree, entry))]
    asks = [{"Key": _key(tree, ask), "Question": ask.question, "Kind": ask.about} for ask in result.asks]
    return EngineAnswer(
        answer or [NOT_SAID],
        think[:500],
        sources,
        result.ended,
        result.detail,
        asks,
        ending,
    )


def _quotes_apart(result: SearchResult) -> str:
    """Return an answer that quotes: of several questions each has a paragraph of its own, above what answers it."""
    of = "\n\n".join(f"{each.question}\n{each.answer}" for each in result.answers)
    if len(result.answers) < 2 or result.answer != of:
        return result.answer
    return "\n\n".join(f"{each.question}\n\n{each.answer}" for each in result.answers)


def _with_before(tree: Tree, query: EngineQuery, reply: EngineAnswer) -> EngineAnswer:
    """Return a reply that has nothing to show with what was quoted before in the topic, which it may be about."""
    if reply.ending.end not in ("nothing", "closest") or reply.ended not in ("answered", "exhausted"):
        return reply
    own = sum(word.weight for word in key_terms_of(query.text))
    refers = not REFERRING.isdisjoint(re.findall(r"[a-z]+", query.text.lower()))
    before = _before(tree, query) if own < FEW_WORDS or (refers and own < SOME_WORDS) else []
    if not before:
        return reply
    # Under the question of the others, since no two passages of one question may share lines.
    asked = next((each["Question"] for each in reply.ending.closest), query.text)
    closest = _apart([*({**each, "Question": asked} for each in before), *reply.ending.closest])
    ending = replace(reply.ending, end="closest", closest=closest[:PASSAGES])
    return replace(reply, answer=[f"{NOT_SAID} {ABOUT_BEFORE}"], ending=ending)


def _before_it(query: EngineQuery) -> list[Mapping[str, Any]]:
    """Return the queries of the topic before this one."""
    return [one for one in query.earlier if one.get("Seq", 0) < query.seq]


def _as_taken(
    tree: Tree, query: EngineQuery, taken: FollowUp, result: SearchResult, reply: EngineAnswer
) -> EngineAnswer:
    """Return a reply that says how its question was taken.

    A quote that does not speak of its subject and of what it asks besides claims nothing. What a model says in words of
    its own may be from a source with other words.
    """
    ending = reply.ending
    sources = [source for source in reply.sources if source.get("Node") and source["Node"] in tree]
    about = any(taken.is_about(_said_around(tree, source)) for source in sources)
    if ending.end == "answered" and sources and not about and all(map(_is_quoted, result.answers)):
        closest = [_passage_of(source, taken.text) for source in sources]
        closest = _apart([*closest, *_nearest(tree, query.text, taken.text), *ending.closest])[:PASSAGES]
        ending = Ending("closest", [taken.text], closest, notes=[ABOUT_ANOTHER, *ending.notes])
        reply = replace(reply, answer=[NOT_SAID], sources=[])

    def as_asked(question: str) -> str:
        return query.text if question == taken.text else question

    ending = replace(
        ending,
        open=list(dict.fromkeys(map(as_asked, ending.open))),
        closest=[{**each, "Question": as_asked(each["Question"])} for each in ending.closest],
        notes=[taken.note, *ending.notes][:PASSAGES],
    )
    return replace(reply, ending=ending)


def _nearest(tree: Tree, words: str, question: str) -> list[dict[str, Any]]:
    """Return the passages that are likeliest for some words, as those that come close to a question."""
    found = []
    for passage in text_evidence(tree).passages(words, k=_NEAREST):
        node = tree.find(passage.node_id)
        place = None if node is None else place_in(tree, node, passage.text)
        if node is None or place is None:
            continue
        found.append(
            {
                "Question": question,
                "Node": node.id,
                "Title": _titled(tree, node.id, node.title),
                "Place": place[0],
                "SaidBy": said_by(node),
                "Lines": place[1],
                "Quote": passage.text[:QUOTE_CHARS],
                "Score": passage.score,
                **_in_document(tree, node.id),
            }
        )
    return found


def _said_around(tree: Tree, source: Mapping[str, Any]) -> str:
    """Return what a source quotes, with the titles above it and its place."""
    node = str(source["Node"])
    titles = [_title(tree, each) for each in (*tree.ancestors(node), node)]
    return " ".join([*titles, node, str(source.get("Quote") or "")])


def found_so_far(tree: Tree, query: EngineQuery) -> EngineAnswer:
    """Return what the run of a query had found when it was stopped."""
    try:
        result = load_run(run_id_of(query), tree=tree)
    except UnknownRun:
        return EngineAnswer([], [], [], "cancelled", ending=Ending("stopped"))
    reply = said_of(tree, result)
    ending = replace(reply.ending, end="stopped")
    return replace(reply, answer=reply.answer if result.answer else [], asks=[], ending=ending)


def _is_quoted(answer: QuestionAnswer) -> bool:
    """Whether each line of an answer stands in what it quotes, but for a signature above the first `…`."""
    quotes = "\n".join(source.quote for source in answer.sources)
    lines = [line.strip() for line in answer.answer.split("\n")]
    # A model writes no line of its own that is this alone.
    below = lines[lines.index("…") :] if "…" in lines[:-1] else lines
    return all(line in quotes or line == "…" for line in below)


def _ending_of(tree: Tree, result: SearchResult) -> Ending:
    """Return how the question ended, with the passages that come closest to what stayed open."""
    closest = [
        {
            "Question": passage.question,
            "Node": passage.node,
            "Title": _titled(tree, passage.node, passage.title),
            "Place": passage.place,
            "SaidBy": _said_by(tree, passage.node),
            "Lines": list(passage.lines),
            "Quote": passage.quote[:QUOTE_CHARS],
            "Score": passage.score,
            **_whole_section(tree, passage.node),
        }
        for passage in result.closest[:PASSAGES]
    ]
    for question in result.open_questions[:PASSAGES]:
        if (said := _said_near(tree, question, closest)) is not None:
            own = [number for number, each in enumerate(closest) if each["Question"] == question]
            closest.insert(own[:2][-1] + 1 if own else len(closest), said)
    # Two passages of one short section are that section, once.
    closest = [{**each, **_in_document(tree, each["Node"])} for each in _apart(closest)]
    end: End = "answered" if result.answer.strip() else "closest" if closest else "nothing"
    # What a question is read as ends as the question does.
    notes = [each if each.startswith(READ_AS) else f"{each}." for each in result.sentences[:PASSAGES]]
    return Ending(end, list(result.open_questions[:PASSAGES]), closest, notes=notes)


def _in_document(tree: Tree, node_id: str) -> dict[str, Any]:
    """Return the place of a node of a document as people find it there: the file with its pages, without lines."""
    where = document_place(tree.find(node_id))
    if where is None:
        return {}
    return {"Place": where[0], "Lines": None, "Pages": None if where[1] is None else list(where[1])}


def _apart(closest: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the passages that neither share lines with a better one for the same question nor say the same."""

    def place_of(each: Mapping[str, Any]) -> tuple[str, Sequence[int] | None]:
        return f"{each['Question']}\0{each['Place']}", each["Lines"]

    told = dict[tuple[str, str], dict[str, Any]]()
    for each in closest:
        told.setdefault((each["Question"], each["Quote"]), each)
    return without_shared_lines(told.values(), place_of)


def _whole_section(tree: Tree, node_id: str) -> dict[str, Any]:
    """Return text and lines of a node that is so short that all of it may stand for a passage of it; else nothing."""
    node = tree.find(node_id)
    try:
        text = "" if node is None or not node.has_content else tree.content(node).strip("\n")
    except (MetatreeError, OSError):
        return {}
    if node is None or not text.strip() or len(text) > SECTION_CHARS or text.count("\n") >= SECTION_LINES:
        return {}
    place = place_in(tree, node, text)
    return {} if place is None else {"Quote": text.strip(), "Lines": place[1]}


def _said_near(tree: Tree, question: str, closest: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what a person said that shares a word with an open question, where no passage is one's; None for nothing.

    Somebody said it since the sources do not: it stands among the passages, of which it may be none of the likeliest.
    """
    for scored in text_evidence(tree).rank([question], k=SAID_AMONG):
        node = tree.find(scored.node_id)
        if node is None or not said_by(node) or not node.content or "who" not in node.provenance:
            continue
        if any(each["Node"] == node.id for each in closest):
            return None
        terms = {term for raw in raw_tokens(f"{node.title} {node.content}") for term in expand(raw)}
        if not any(word.weight >= NOTABLE and word.is_in(terms) for word in key_terms_of(question)):
            continue
        text = node.content.strip("\n")
        return {
            "Question": question,
            "Node": node.id,
            "Title": node.title,
            "Place": node.id,
            "SaidBy": said_by(node),
            "Lines": [1, text.count("\n") + 1],
            "Quote": text[:QUOTE_CHARS],
            "Score": 0.0,
        }
    return None


def _before(tree: Tree, query: EngineQuery) -> list[dict[str, Any]]:
    """Return what the latest answer on its subject quoted, for a question without words of its own."""
    # Of what nothing was found for there is nothing else to show.
    earlier = [one for one in _before_it(query) if one.get("End") != "nothing"]
    turns = [one for one in same_subject(earlier) if one.get("Answer")]
    quoted = [turn for turn in turns if turn.get("End") not in ("closest", "nothing", "stopped")][-1:]
    sources = [source for turn in quoted for source in turn.get("Sources") or ()]
    return [
        {
            **_passage_of(source, query.text),
            **({} if source.get("Pages") else _whole_section(tree, source["Node"])),
            **_in_document(tree, source["Node"]),
        }
        for source in sources
        if source.get("Quote") and source.get("Node") in tree
    ][:PASSAGES]


def _passage_of(source: Mapping[str, Any], question: str) -> dict[str, Any]:
    """Return a source of an answer as a passage that comes close to a question."""
    return {
        "Question": question,
        "Node": source["Node"],
        "Title": source.get("Title") or source["Node"],
        "Place": source.get("Place") or source.get("Path") or source["Node"],
        "SaidBy": source.get("SaidBy") or "",
        "Lines": source.get("Lines") or None,
        "Pages": source.get("Pages") or None,
        "Quote": source["Quote"][:QUOTE_CHARS],
        "Score": 0.0,
    }


def step_of(tree: Tree, entry: TraceEntry, *, ruled_out: int | None = RULED_OUT) -> dict[str, Any] | None:
    """Return one step of a search for people who watch, None for one that says nothing of its own.

    Args:
        tree: the memory that was searched; says the titles of nodes.
        entry: the step, as the trace has it.
        ruled_out: how many of those that were ruled out are reported; None for all.
    """
    title, more, reason = _title(tree, entry.node), dict[str, Any](), without_error(entry.reason)
    match entry.event:
        case "route":
            chosen, offered = entry.data.get("choice"), entry.data.get("offered") or ()
            unviable = entry.data.get("unviable") or {}
            text = f"chose {_title(tree, chosen)}" if chosen else "chose nothing here"
            text += f" of {len(offered)}" + (f", ruled out {len(unviable)}" if unviable else "")
            text += f": {reason}" if reason else ""
            shown_marks = list(unviable.items())[:ruled_out]
            more = {
                "Chosen": _title(tree, chosen),
                "Trail": _between(tree, entry.node, chosen),
                "Offered": len(offered),
                "By": entry.data.get("by", "router"),
                "RuledOut": [
                    {"Node": node, "Title": _title(tree, node), "Reason": str(why)[:300]}
                    for node, why in shown_marks
                ],
                "RuledOutCount": len(unviable),
            }
        case "read":
            count = len(entry.data.get("answers") or ())
            text = f"read {title}: " + (f"{count} answer{'s' * (count != 1)}" if count else "nothing of use")
            more = {"Answers": count}
        case "ask":
            text = f"asks first: {reason}"
        case "tool" | "create" | "fallback" | "restart" | "second_look" | "person":
            text = f"{entry.event.replace('_', ' ')} {title}: {reason}".replace(" : ", ": ")
        case _:
            return None
    return {
        "Event": entry.event,
        "Node": entry.node,
        "Choice": entry.data.get("choice"),
        "Text": text[:1_000],
        "Title": title,
        "Above": tree.ancestors(entry.node) if entry.node and entry.node in tree else [],
        "Frame": entry.frame,
        "Step": entry.step,
        "Reason": reason[:500],
        **more,
    }


def _part_of(tree: Tree, query: EngineQuery) -> tuple[str | None, list[tuple[str, str]]]:
    """Return the part of a tree that a query is narrowed to, and (name, text) of what is the title of no one part."""
    start: str | None = None
    unknown: list[tuple[str, str]] = []
    for name in ("Category", "Region"):
        value = query.modifiers.get(name)
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str) or not text.strip():
                continue
            matches = [
                node.id
                for depth, node in tree.walk(start or tree.root, depth=2)
                if depth and node.title.casefold() == text.strip().casefold()
            ]
            if len(matches) == 1:
                start = matches[0]
            else:
                unknown.append((name, text.strip()[:200]))
    return start, unknown


def _unknown_parts(tree: Tree, query: EngineQuery) -> list[str]:
    """Return what the asker is told of a category or region that narrowed nothing."""
    return [f"{name} “{text}” {NARROWED_NOTHING}" for name, text in _part_of(tree, query)[1]]


def _narrowed(tree: Tree, query: EngineQuery) -> tuple[str | None, str]:
    """Return where the search of a query starts, and the context that it gets.

    A `Category` or `Region` that is the title of one node near the root narrows the search to it; others are said.
    """
    start, unknown = _part_of(tree, query)
    context = [f"{name}: {text}" for name, text in unknown]
    if isinstance(text := query.modifiers.get("Instructions"), str) and text.strip():
        context.append(f"Instructions of the asker's program: {text.strip()[:_TURN_CHARS]}")
    earlier = [one for one in _before_it(query) if one.get("Answer")]
    for turn in earlier[-_TURNS:]:
        asked = f"Asked before: {turn['Query'][:_TURN_CHARS]}"
        if turn.get("End") in ("closest", "nothing"):
            context.append(f"{asked}\nNothing answered it.")
        elif turn.get("End") == "stopped":
            found = " ".join(turn["Answer"])[:_TURN_CHARS]
            context.append(f"{asked}\nIts search was stopped; found so far: {found}")
        else:
            context.append(f"{asked}\nAnswered: {' '.join(turn['Answer'])[:_TURN_CHARS]}")
    return start, "\n".join(context)


def corrections_of_text(tree: Tree, node: str, text: str) -> list[str]:
    """Return what people said against words of a node, as an answer that quotes them says it."""
    return corrections_of(tree, [{"Node": node, "Quote": text}])


def _titled(tree: Tree, node_id: str, title: str) -> str:
    """Return the title of what is quoted: of a page, or of lines, that of the part or document that they are of."""
    if not node_id or not _NUMBERED.fullmatch(title) or node_id not in tree:
        return title
    above = (node for each in reversed(tree.ancestors(node_id)) if (node := tree.find(each)) is not None)
    named = next((node for node in above if node.id != ROOT and not _NUMBERED.fullmatch(node.title)), None)
    return title if named is None else str(named.attributes.get("title") or named.title)


def _title(tree: Tree, node: str | None) -> str:
    match = tree.find(node) if node else None
    return match.title if match is not None else str(node or "")


def _between(tree: Tree, node: str | None, below: str | None) -> list[str]:
    """Return the titles that lie between a node and one below it, which a search may choose at once."""
    if not node or not below or tree.find(below) is None:
        return []
    above = tree.ancestors(below)
    passed = above[above.index(node) + 1 :] if node in above else []
    return [_title(tree, each) for each in passed]


def _path(tree: Tree, node: str) -> str | None:
    match = tree.find(node)
    return None if match is None else match.path


def _said_by(tree: Tree, node: str) -> str:
    """Return who said a memory, or that it came by an import; empty for what is in the sources."""
    match = tree.find(node)
    return "" if match is None else said_by(match)
