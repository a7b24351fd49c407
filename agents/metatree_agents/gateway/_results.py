"""What tools give, bounded: a long text is kept as a node, and the agent gets its beginning and the id to read on."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from metatree import Node, Tree
from metatree.errors import UnknownNode, UserError
from metatree_agents.gateway._names import plain_text

RESULTS: Final = "results"
CHARS_A_TOKEN: Final = 3
"""Counted low, so that a text of so many tokens has no more in any language that is written with letters."""
_MOST_CHARS: Final = 16_000_000
_MOST_DATA: Final = 1_500_000
"""Characters of base64 in the pictures and sounds of a result that are passed on; hosts refuse larger ones."""
_MOST_ABOUT: Final = 2_000
"""Characters of what a picture or sound has besides."""
_MOST_RESULTS: Final = 1_000
_DROPPED: Final = 100
"""Of the results that are kept, the oldest go by so many at once."""


class Results:
    """Long results in the memory.

    Args:
        tree: where they are kept.
        max_tokens: of what an agent gets at once.
    """

    def __init__(self, tree: Tree, max_tokens: int) -> None:
        self._tree = tree
        self._chars = max_tokens * CHARS_A_TOKEN

    def bounded(self, result: Mapping[str, Any], tool: str) -> dict[str, Any]:
        """Return a result of the protocol with no more text than an agent gets at once; the rest is kept."""
        content = _bare_parts(result.get("content") or ())
        texts = [part["text"] for part in content if part["type"] == "text"]
        structure = result.get("structuredContent")
        structured = "" if structure is None else json.dumps(structure, ensure_ascii=False, indent=1)
        rest = {"isError": result["isError"]} if "isError" in result else {}
        others = [part for part in content if part["type"] != "text"]
        text, beside = "\n\n".join(texts), sum(len(_said(part)) for part in others)
        if len(text) + beside <= self._chars and len(structured) <= self._chars:
            bounded = {**rest, "content": content}
            return bounded if structure is None else {**bounded, "structuredContent": structure}
        if beside > self._chars:  # resources, and links to them, go with the texts
            texts += [_said(part) for part in others if not _data(part)]
            others = [part for part in others if _data(part)]
            text = "\n\n".join(texts)
        whole = text if len(text) >= len(structured) or len(text) > self._chars else structured
        node = self._kept(whole, tool)
        first = _beginning(whole, self._chars)
        note = (
            f"\n… {len(whole) - len(first):,} of {len(whole):,} characters are left out:"
            f' browse_tools(node="{node}", offset={len(first)}) reads on'
        )
        return {**rest, "content": [{"type": "text", "text": first + note}, *others]}

    def page(self, node: str, offset: int) -> str:
        """Return a part of a long result.

        Raises:
            UserError: there is no such result, or it is not so long.
        """
        try:
            text = self._tree.content(node)
        except UnknownNode as exc:
            raise UserError(
                f"there is no result {node!r}: old ones are dropped; call the tool again"
            ) from exc
        return paged(text, offset, self._chars, node)

    def _kept(self, text: str, tool: str) -> str:
        tree = self._tree
        if RESULTS not in tree:
            tree.add(Node(RESULTS, "Results", "Long results of tools.", kind="folder"))
        if tree.child_count(RESULTS) >= _MOST_RESULTS:
            for old in tree.child_page(RESULTS, count=_DROPPED):
                tree.delete(old.id)
            tree.purge()
        node = f"result/{secrets.token_hex(6)}"
        first = " ".join(plain_text(text[:300]).split())[:200]
        kept = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}\n… cut"
        provenance = {"tool": tool, "at": time.time()}
        tree.add(Node(node, tool, first, kept, kind="tool result", provenance=provenance), RESULTS)
        return node


def paged(text: str, offset: int, chars: int, node: str) -> str:
    """Return a part of a text with a note on how to read on."""
    if offset < 0 or (offset and offset >= len(text)):
        raise UserError(f"offset={offset}: {node!r} has {len(text)} characters")
    part = _beginning(text[offset : offset + chars], chars)
    end = offset + len(part)
    note = f"\n… to {end:,} of {len(text):,} characters: offset={end} reads on" if end < len(text) else ""
    return part + note


def _beginning(text: str, chars: int) -> str:
    """Return at most so many characters, up to the end of a line where there is one near."""
    if len(text) <= chars:
        return text
    end = text.rfind("\n", chars * 3 // 4, chars)
    return text[: end + 1 if end > 0 else chars]


def _bare_parts(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a result without what hosts need not know; pictures and sounds up to what hosts take."""
    result, left = [], _MOST_DATA
    for part in parts:
        bare = {key: value for key, value in part.items() if key not in ("_meta", "annotations")}
        if isinstance(bare.get("resource"), Mapping):
            bare["resource"] = {key: value for key, value in bare["resource"].items() if key != "_meta"}
        left -= len(_data(bare))
        if _data(bare) and (left < 0 or len(_said(bare)) > _MOST_ABOUT):
            kind = bare.get("mimeType") or (bare.get("resource") or {}).get("mimeType") or bare.get("type")
            size = len(_data(bare)) * 3 // 4
            bare = {"type": "text", "text": f"[{str(kind)[:100]}, about {size:,} bytes: too large, left out]"}
        result.append(bare)
    return result


def _data(part: Mapping[str, Any]) -> str:
    """Return the base64 of a picture, a sound or a file, empty for what is no data."""
    data = part.get("data") or (part.get("resource") or {}).get("blob")
    return data if isinstance(data, str) else ""


def _said(part: Mapping[str, Any]) -> str:
    """Return what a model reads of a part that is no text: the text of a resource, else all but its data."""
    text = (part.get("resource") or {}).get("text")
    if isinstance(text, str):
        return text
    about = {key: value for key, value in part.items() if key not in ("data", "resource")}
    about |= {key: value for key, value in (part.get("resource") or {}).items() if key != "blob"}
    return json.dumps(about, ensure_ascii=False)


def without_texts(value: Any, hidden: Sequence[str]) -> Any:
    """Return JSON with some texts replaced in all its strings, names of fields too.

    Example:
        >>> without_texts({"said": ["the key is s3cr3t!"], "s3cr3t!": 1}, ["s3cr3t!"])
        {'said': ['the key is [secret]'], '[secret]': 1}
    """
    if not hidden:
        return value
    if isinstance(value, str):
        for each in hidden:
            value = value.replace(each, "[secret]")
        return value
    if isinstance(value, Mapping):
        return {without_texts(key, hidden): without_texts(each, hidden) for key, each in value.items()}
    return [without_texts(each, hidden) for each in value] if isinstance(value, list) else value
