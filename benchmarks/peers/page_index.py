"""PageIndex in local mode (pageindex): an agent with tools over a document's outline and pages.

The package runs an agent of the OpenAI Agents SDK, whose model it makes with `local_chat._openai_model` (LiteLLM). The
stub takes the place of that model; everything else, the instructions, the tools and their replies, is the package's.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import litellm  # noqa: F401  # the client loads it in a thread of its own otherwise, on our clock
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pageindex import PageIndexLocalClient, local_chat
from pageindex.errors import PageIndexAPIError
from pageindex.local_store import DocStore

from benchmarks.peers.made_tree import Code, MadeTree, written
from benchmarks.peers.stub import UNKNOWN, Stub, heading

DOCUMENT = "pi-made-tree"
NAME = "handbook.pdf"


class StubModel(Model):
    """Reads the conversation and calls the tools, as the instructions ask."""

    def __init__(self, stub: Stub, name: str = NAME) -> None:
        self._stub = stub
        self._name = name
        self._numbers = 0

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002  # the base calls it so
        model_settings: Any,
        tools: list[Any],
        *_: Any,
        **__: Any,
    ) -> Any:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        texts = [system_instructions or "", _tools_text(tools), *map(_item_text, items)]
        with self._stub.call(*texts):
            output = self._next(items)
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("nothing here streams")

    def _next(self, items: list[Any]) -> Any:
        """Decide on what was seen: answer, read a page, or ask for the next part of the outline."""
        replies = [item["output"] for item in items if item.get("type") == "function_call_output"]
        outlines = [text for text in map(_reply_text, replies) if '"structure"' in text]
        pages = [text for text in map(_reply_text, replies) if '"returned_pages"' in text]
        fact = next((fact for text in pages if (fact := self._stub.read(text))), None)
        if fact is not None:
            return self._say(f"It is {fact}.")
        if not outlines:
            return self._call("get_document_structure", doc_name=self._name)
        sections = {code: page for text in outlines for code, page in _sections(text)}
        latest = _sections(outlines[-1])
        more = _next_part(outlines[-1])
        target = self._stub.target
        if self._stub.errs():
            wrong = [page for code, page in latest if code != target]
            return self._call(
                "get_page_content", doc_name=self._name, pages=str(self._stub.rng.choice(wrong))
            )
        if target in sections:
            return self._call("get_page_content", doc_name=self._name, pages=str(sections[target]))
        if more is not None:
            return self._call("get_document_structure", doc_name=self._name, part=more)
        return self._say(UNKNOWN)

    def _call(self, tool: str, **arguments: Any) -> Any:
        self._numbers += 1
        call = f"call_{self._numbers}"
        return ResponseFunctionToolCall(
            type="function_call", id=call, call_id=call, name=tool, arguments=json.dumps(arguments)
        )

    def _say(self, text: str) -> Any:
        self._numbers += 1
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        return ResponseOutputMessage(
            id=f"message_{self._numbers}",
            type="message",
            role="assistant",
            status="completed",
            content=[content],
        )


def _tools_text(tools: list[Any]) -> str:
    return json.dumps([[tool.name, tool.description, tool.params_json_schema] for tool in tools])


def _item_text(item: Any) -> str:
    """Return what a model is sent of one item of the conversation."""
    if item.get("type") == "function_call":
        return f"{item['name']} {item['arguments']}"
    if item.get("type") == "function_call_output":
        return _reply_text(item["output"])
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _reply_text(output: Any) -> str:
    if isinstance(output, list):
        return "".join(part["text"] for part in output)
    if isinstance(output, dict):
        return str(output["text"])
    return str(output)


@lru_cache(maxsize=64)
def _outline(reply: str) -> Any:
    parsed = json.loads(reply)
    return json.loads(parsed["text"]) if "text" in parsed else parsed


@lru_cache(maxsize=64)
def _sections(reply: str) -> list[tuple[Code, int]]:
    """Return the leaves that an outline lists, with their pages."""
    found: list[tuple[Code, int]] = []
    stack = list(_outline(reply)["structure"])
    while stack:
        node = stack.pop()
        if node.get("nodes"):
            stack += node["nodes"]
        elif (code := heading(node["title"])) is not None:
            found.append((code, node["start_index"]))
    return found


def _next_part(reply: str) -> int | None:
    pagination = _outline(reply).get("pagination")
    return pagination["part"] + 1 if pagination and pagination["has_more"] else None


class PageIndex:
    """A local client with one document: one page for each leaf, the outline that the made tree has.

    Args:
        folder: where its store lies.
        max_turns: model calls before it gives up; None for the default of the Agents SDK, 10.
    """

    def __init__(self, made: MadeTree, stub: Stub, folder: Path, *, max_turns: int | None = None) -> None:
        outline = [_node(made, code) for code in made.children(())]
        pages = [
            {"page_index": i + 1, "markdown": f"{made.title(made.leaf(i))}\n\n{made.content(made.leaf(i))}"}
            for i in range(made.leaves)
        ]
        meta = {
            "id": DOCUMENT,
            "name": NAME,
            "description": "A handbook of limits.",
            "status": "completed",
            "createdAt": "2026-01-01T00:00:00.000",
            "pageNum": len(pages),
            "folderId": None,
            "metadata": None,
            "mode": "flash",
        }
        client = PageIndexLocalClient(storage_path=str(folder), chat_model="stub")
        DocStore(str(folder)).save_document(DOCUMENT, meta, outline, pages)
        model = StubModel(stub)
        local_chat._openai_model = lambda *args, **kwargs: model
        self._client = client
        self._max_turns = max_turns

    def search(self, question: str) -> str:
        try:
            return str(self._client.chat(question, doc_id=DOCUMENT, max_turns=self._max_turns))
        except PageIndexAPIError as exc:
            if "max_turns" in str(exc):
                return ""
            raise


def _node(made: MadeTree, code: Code) -> dict[str, Any]:
    first = code + (1,) * (made.depth - len(code))
    last = code + (10,) * (made.depth - len(code))
    node: dict[str, Any] = {
        "title": made.title(code),
        "node_id": written(code),
        "start_index": made.position(first) + 1,
        "end_index": made.position(last) + 1,
        "summary": made.description(code),
    }
    if len(code) < made.depth:
        node["nodes"] = [_node(made, child) for child in made.children(code)]
    return node
