"""Long conversations: the turn that holds the answer (LoCoMo), the messages that an answer needs (BEAM).

BEAM has conversations of 100,000 and 500,000 tokens and ten abilities. Its questions without an answer are left out.
Every second conversation of a tier was looked at while the search was written (`looked at`); the others were not
(`held out`). Its topics are not laid out in the tree: no export that people have says where one begins.
"""

from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import Corpus, Options, Query, rows
from metatree import Node
from metatree.notes.wishes import branch, wish_nodes

BEAM_LOOKED_AT = frozenset(
    [
        *(f"beam-100K-{number}" for number in (1, 7, 13, 17)),
        *(f"beam-500K-{number}" for number in (4, 12, 22, 26)),
    ]
)
"""The conversations whose questions and texts may be read when something is changed; the others are for reporting."""


def _conversations(options: Options) -> Corpus:
    """A conversation has sessions with their dates, a session has turns with their speakers."""
    folder = options.data / "memory"
    corpus = Corpus([], {}, [], accept=("turn",))
    turns = rows(folder / "locomo_turns.jsonl")
    speakers: dict[str, list[str]] = {}
    for turn in turns:
        speakers.setdefault(turn["conv"], [])
        if turn["speaker"] not in speakers[turn["conv"]]:
            speakers[turn["conv"]].append(turn["speaker"])
    known: set[str] = set()
    for turn in turns:
        conversation, session = turn["conv"], f"{turn['conv']}/D{turn['session']}"
        if conversation not in known:
            title = f"Conversation of {' and '.join(speakers[conversation])}"
            corpus.nodes.append((Node(id=conversation, title=title, kind="conversation"), "."))
        if session not in known:
            title = f"Session {turn['session']}, {turn['date']}"
            corpus.nodes.append((Node(id=session, title=title, kind="session"), conversation))
        known |= {conversation, session}
        said = f"{turn['speaker']}: {turn['text']}"
        shown = f"\n[shows an image: {turn['caption']}]" if turn["caption"] else ""
        attributes = {"speaker": turn["speaker"], "date": turn["date"]}
        node = Node(
            id=turn["id"], title=turn["speaker"], content=said + shown, kind="turn", attributes=attributes
        )
        corpus.nodes.append((node, session))
        corpus.texts[turn["id"]] = f"{turn['date']} {said}"
        corpus.scopes[turn["id"]] = conversation
    for row in rows(folder / "locomo.jsonl"):
        if row["category"] != "adversarial":
            conversation = row["id"].rpartition("-q")[0]
            corpus.queries.append(Query(row["id"], row["query"], frozenset(row["gold"]), conversation))
    return corpus


def _beam(options: Options) -> Corpus:
    """A conversation has sessions with their dates, a session has turns; questions are grouped by ability and tier."""
    folder = options.data / "memory"
    corpus = Corpus([], {}, [], accept=("turn",))
    known: set[str] = set()
    wishes: list[tuple[Node, str]] = []
    for turn in rows(folder / "beam_turns.jsonl.gz"):
        conversation, session = turn["conv"], f"{turn['conv']}/S{turn['session']}"
        day = datetime.strptime(turn["date"], "%B-%d-%Y").replace(tzinfo=UTC).date()
        said = f"{turn['speaker']}: {turn['text']}"
        if conversation not in known:
            corpus.nodes.append((Node(id=conversation, title=conversation, kind="conversation"), "."))
        if session not in known:
            title = f"Session {turn['session']}, {day}"
            corpus.nodes.append((Node(id=session, title=title, kind="session"), conversation))
        known |= {conversation, session}
        attributes = {"speaker": turn["speaker"], "at": day.isoformat()}
        node = Node(turn["id"], turn["speaker"], content=said, kind="turn", attributes=attributes)
        corpus.nodes.append((node, session))
        wishes += wish_nodes(turn["id"], turn["text"], turn["speaker"], day.isoformat())
        corpus.texts[turn["id"]] = said
        corpus.scopes[turn["id"]] = conversation
    corpus.nodes += [(branch(), "."), *wishes]
    for row in rows(folder / "beam.jsonl"):
        conversation = row["conv"]
        ability, tier = row["category"].replace("_", " "), conversation.split("-")[1]
        half = "looked at" if conversation in BEAM_LOOKED_AT else "held out"
        groups = (f"{half}, all", f"{half}, {tier}", f"{half}, {ability}")
        corpus.queries.append(Query(row["id"], row["query"], frozenset(row["gold"]), conversation, groups))
    return corpus


LOCOMO = Collection(
    "locomo",
    "the turn in the known conversation, without the adversarial questions",
    _conversations,
    ("R@5", "R@10"),
    {"R@5": 0.62, "R@10": 0.70},
)

BEAM = Collection(
    "beam",
    "the messages that an answer needs, in the known conversation",
    _beam,
    ("R@10", "R@10-3", "R@10+3"),
    {"R@10": 0.65},
)
