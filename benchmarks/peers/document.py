"""metatree and PageIndex on a real PDF with an outline: what a search takes and finds.

    python -m benchmarks.peers.document FILE.pdf [--searches 60]

in the venv of `make bench-peers`. PageIndex reads the file in its Flash mode, without a model (no summaries, sections
merged as it does by default); metatree builds its tree as `metatree build FILE.pdf` does. A question is for a line that
stands once in the file, in what either of them reads: its section and three longest words are asked for, and a search
counts as found when the answer holds it. The model is the stub: it goes where that line is and errs at the set rate.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import litellm  # noqa: F401  # before the client loads it in a thread of its own
from metatree_memory_tools import build_tree
from metatree_routers.evidence.evidence import text_evidence
from pageindex import PageIndexLocalClient, local_chat, page_index_flash
from pageindex.errors import PageIndexAPIError
from pageindex.local_api import LocalAPI
from pageindex.local_store import DocStore

from benchmarks.peers.made_tree import Code
from benchmarks.peers.measure import System, measure
from benchmarks.peers.ours import Metatree
from benchmarks.peers.page_index import StubModel, _outline, _reply_text
from benchmarks.peers.shipped import shipped
from benchmarks.peers.stub import UNKNOWN, Condition, Stub
from metatree import Evidence, Tree

ERRORS = (0.0, 0.1, 0.3)
DOCUMENT = "pi-document"
MOST_PAGES = 5
"""Pages that the agent asks for at once: the package's instructions ask for tight ranges."""
LEAST_CHARS = 40


@dataclass
class Line:
    """A line of a section, and where it is."""

    text: str
    page: int
    code: Code
    question: str


@dataclass
class DocumentStub(Stub):
    """The stub, for a document: a code is the place of a node in metatree's outline."""

    line: Line = field(default_factory=lambda: Line("", 0, (), ""))
    titles: Mapping[str, Code] = field(default_factory=dict)

    def code(self, title: str) -> Code | None:
        known = [each for each in self.titles if title.startswith(each)]
        return self.titles[max(known, key=len)] if known else (-1,)

    def quote(self, fact: str) -> str:
        return fact

    def read(self, text: str) -> str | None:
        return self.line.text if squeezed(self.line.text) in squeezed(text) else None


def squeezed(text: str) -> str:
    """Return the letters and digits of a text: programs that read a PDF set blanks and signs in their own ways."""
    return re.sub(r"[\W_]+", "", text).casefold()


class Document:
    """What `measure` asks for: lines in the place of leaves."""

    def __init__(self, lines: list[Line], stub: DocumentStub) -> None:
        self.lines, self._stub = lines, stub
        self.leaves = len(lines)

    def leaf(self, index: int) -> Code:
        self._stub.line = self.lines[index]
        return self.lines[index].code

    def question(self, _leaf: Code) -> str:
        return self._stub.line.question

    def fact(self, _leaf: Code) -> str:
        return squeezed(self._stub.line.text)


class Squeezed:
    """A system whose answers are compared by their letters alone."""

    def __init__(self, system: System) -> None:
        self._system = system

    def begin(self) -> None:
        if hasattr(self._system, "begin"):
            self._system.begin()

    def search(self, question: str) -> str:
        return squeezed(self._system.search(question))


class FlashIndex:
    """PageIndex over what its Flash mode makes of a file."""

    def __init__(self, file: Path, stub: DocumentStub, folder: Path, pages: list[str]) -> None:
        outline = page_index_flash(str(file), summary=False, optimize="merge")["structure"]
        texts = [{"page_index": i + 1, "markdown": text} for i, text in enumerate(pages)]
        meta = {
            "id": DOCUMENT,
            "name": file.name,
            "description": "",
            "status": "completed",
            "createdAt": "2026-01-01T00:00:00.000",
            "pageNum": len(pages),
            "folderId": None,
            "metadata": None,
            "mode": "flash",
        }
        self._client = PageIndexLocalClient(storage_path=str(folder), chat_model="stub")
        DocStore(str(folder)).save_document(DOCUMENT, meta, outline, texts)
        self._model = Reader(stub, file.name)
        self.nodes = sum(1 for _ in _walk(outline))

    def search(self, question: str) -> str:
        local_chat._openai_model = lambda *args, **kwargs: self._model
        try:
            return str(self._client.chat(question, doc_id=DOCUMENT, max_turns=None))
        except PageIndexAPIError as exc:
            if "max_turns" in str(exc):
                return ""
            raise


class Reader(StubModel):
    """Reads the outline, then the pages of the deepest section around the line, a few at a time."""

    _stub: DocumentStub

    def _next(self, items: list[Any]) -> Any:
        replies = [
            _reply_text(item["output"]) for item in items if item.get("type") == "function_call_output"
        ]
        fact = next(
            (fact for text in replies if '"returned_pages"' in text and (fact := self._stub.read(text))), None
        )
        if fact is not None:
            return self._say(f"It says: {fact}")
        outlines = [text for text in replies if '"structure"' in text]
        if not outlines:
            return self._call("get_document_structure", doc_name=self._name)
        pagination = _outline(outlines[-1]).get("pagination")
        if pagination and pagination["has_more"]:
            return self._call("get_document_structure", doc_name=self._name, part=pagination["part"] + 1)
        nodes = [node for text in outlines for node in _walk(_outline(text)["structure"])]
        around = [n for n in nodes if n["start_index"] <= self._stub.line.page <= n["end_index"]]
        others = [n for n in nodes if n not in around]
        asked = {
            page
            for item in items
            if item.get("type") == "function_call" and item["name"] == "get_page_content"
            for first, _, last in re.findall(r'"(\d+)(-(\d+))?"', item["arguments"])
            for page in range(int(first), int(last or first) + 1)
        }
        if self._stub.errs() and others:
            node = self._stub.rng.choice(others)
        elif around:
            node = min(around, key=lambda n: n["end_index"] - n["start_index"])
        else:
            return self._say(UNKNOWN)
        open_ = [page for page in range(node["start_index"], node["end_index"] + 1) if page not in asked]
        if not open_:
            return (
                self._say(UNKNOWN)
                if node in around
                else self._pages(node["start_index"], node["start_index"])
            )
        return self._pages(open_[0], min(open_[0] + MOST_PAGES - 1, open_[-1]))

    def _pages(self, first: int, last: int) -> Any:
        pages = str(first) if first == last else f"{first}-{last}"
        return self._call("get_page_content", doc_name=self._name, pages=pages)


def _walk(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from _walk(node.get("nodes") or [])


def lines_of(tree: Tree, pages: list[str]) -> tuple[list[Line], dict[str, Code]]:
    """Return the lines that can be asked for, one for each node with a text, and the places of unique titles."""
    paths: list[tuple[Any, Code, list[str]]] = []

    def walk(node_id: str, code: Code, titles: list[str]) -> None:
        for number, child in enumerate(tree.children(node_id)):
            paths.append((child, (*code, number), [*titles, child.title]))
            walk(child.id, (*code, number), [*titles, child.title])

    walk(tree.root, (), [])
    count = Counter(titles[-1] for _, _, titles in paths)
    by_title = {titles[-1]: code for _, code, titles in paths}
    ours = squeezed("\n".join(tree.content(node.id) for node, _, _ in paths if node.has_content))
    theirs = [squeezed(page) for page in pages]
    rng = random.Random(7)
    lines = []
    for node, code, titles in paths:
        if not node.has_content or any(count[title] > 1 for title in titles):
            continue
        given = tree.content(node.id).splitlines()
        rng.shuffle(given)
        for text in given:
            short = squeezed(text)
            on = [number for number, page in enumerate(theirs, 1) if short in page]
            if len(short) >= LEAST_CHARS and ours.count(short) == 1 and len(on) == 1:
                section = titles[-1].partition(", page ")[0]
                words = sorted(set(re.findall(r"[a-z]{4,}", text)), key=lambda word: (-len(word), word))[:3]
                question = f"What does {section} say about {', '.join(words)}?"
                lines.append(Line(text.strip(), on[0], code, question))
                break
    return lines, by_title


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--searches", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    pages = LocalAPI._extract_page_texts(str(given.file))
    with (
        tempfile.TemporaryDirectory() as folder,
        build_tree(given.file, out=Path(folder) / "tree.db") as tree,
    ):
        lines, titles = lines_of(tree, pages)
        stub = DocumentStub(random.Random(given.seed), titles=titles)
        made: Any = Document(lines, stub)
        text = text_evidence(tree)
        text.refresh()
        flash = FlashIndex(given.file, stub, Path(folder) / "pageindex", pages)
        print(
            f"{given.file.name}: {len(pages)} pages, {len(lines)} lines to ask for, {len(tree):,} nodes of metatree,"
        )
        print(f"{flash.nodes} of PageIndex; {given.searches} searches each")
        print(f"{'system':24} errors   found  calls  tokens  largest")
        systems: tuple[tuple[str, Any, Evidence | Literal[False] | None], ...] = (
            ("PageIndex, Flash", flash, None),
            ("metatree", None, text),
            ("metatree, no index", None, False),
        )
        for name, system, evidence in systems:
            run = Squeezed(system or Metatree(tree, lambda: shipped(stub), evidence or False))
            for errors in ERRORS:
                m = measure(run, stub, made, Condition(errors, 0.2), searches=given.searches, seed=given.seed)
                print(
                    f"{name:24} {errors:6.1f} {100 * m.hit_rate:7.1f} {m.calls:6.2f} {m.tokens:7.0f} {m.largest:8}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
