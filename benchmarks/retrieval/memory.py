"""Long conversations: the turn that holds the answer (LoCoMo)."""

from __future__ import annotations

from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import Corpus, Options, Query, rows
from metatree import Node


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


LOCOMO = Collection(
    "locomo",
    "the turn in the known conversation, without the adversarial questions",
    _conversations,
    ("R@5", "R@10"),
    {"R@5": 0.62, "R@10": 0.70},
)
