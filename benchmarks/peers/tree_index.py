"""LlamaIndex's TreeIndex (llama-index-core), its own builder and its own query engine."""

from __future__ import annotations

import re
from typing import Any

from llama_index.core import MockEmbedding, Settings
from llama_index.core.indices.tree import TreeIndex
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.schema import TextNode
from pydantic import PrivateAttr

from benchmarks.peers.made_tree import BRANCHING, MadeTree
from benchmarks.peers.stub import UNKNOWN, Stub, heading

_CHOICE = re.compile(r"^\((?P<number>\d+)\) (?P<text>.*)$", re.MULTILINE)
_EXISTING = re.compile(r"^We have provided an existing answer: (?P<answer>.*)$", re.MULTILINE)


class StubLLM(CustomLLM):  # type: ignore[misc]  # the base is untyped where llama-index is not installed
    """Answers the four prompts of a tree index: summarise, choose, answer, refine."""

    _stub: Stub = PrivateAttr()
    _made: MadeTree = PrivateAttr()
    _building: bool = PrivateAttr(default=True)

    def __init__(self, stub: Stub, made: MadeTree) -> None:
        super().__init__()
        self._stub = stub
        self._made = made

    @property
    def metadata(self) -> Any:
        return LLMMetadata(context_window=128_000, num_output=256, model_name="stub")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        if self._building:
            return CompletionResponse(text=self._summarise(prompt))
        with self._stub.call(prompt):
            return CompletionResponse(text=self._answer(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        raise NotImplementedError("nothing here streams")

    def _summarise(self, prompt: str) -> str:
        """Return the made tree's words for the parent of what is summarised."""
        first = next(code for line in prompt.splitlines() if (code := heading(line)))
        return f"{self._made.title(first[:-1])}. {self._made.description(first[:-1])}"

    def _answer(self, prompt: str) -> str:
        if prompt.startswith("Some choices are given below"):
            return self._choose(prompt)
        fact = self._stub.read(prompt)
        if fact is not None:
            return f"It is {fact}."
        existing = _EXISTING.search(prompt)
        return existing["answer"] if existing else UNKNOWN

    def _choose(self, prompt: str) -> str:
        numbers, codes = [], []
        for found in _CHOICE.finditer(prompt):
            code = heading(found["text"])
            if code is not None:
                numbers.append(found["number"])
                codes.append(code)
        asked = re.search(r"\(no more than (\d+), ranked", prompt)
        wanted = int(asked[1]) if asked else 1
        picked: list[str] = []
        while len(picked) < min(
            wanted, len(numbers) + len(picked)
        ):  # each place of the ranking is a decision
            choice, _ = self._stub.pick(codes)
            if choice is None:  # the prompt has no way to say so
                choice = self._stub.rng.randrange(len(codes))
            picked.append(numbers.pop(choice))
            codes.pop(choice)
        return f"ANSWER: {', '.join(picked)}\nIt is about this."


class LlamaTreeIndex:
    """A query engine over a tree index of the made tree's leaves.

    Args:
        branches: how many choices it follows at each level (`child_branch_factor`).
    """

    def __init__(self, made: MadeTree, stub: Stub, *, branches: int = 1) -> None:
        Settings.embed_model = MockEmbedding(embed_dim=1)
        llm = StubLLM(stub, made)
        Settings.llm = llm
        leaves = (made.leaf(i) for i in range(made.leaves))
        nodes = [TextNode(text=f"{made.title(leaf)}. {made.content(leaf)}") for leaf in leaves]
        index = TreeIndex(nodes, num_children=BRANCHING, llm=llm)
        llm._building = False
        self._engine = index.as_query_engine(
            retriever_mode="select_leaf", child_branch_factor=branches, llm=llm
        )

    def search(self, question: str) -> str:
        return str(self._engine.query(question))
