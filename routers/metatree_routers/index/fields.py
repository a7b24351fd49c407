"""What of a node is indexed, and in which field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from metatree.node import Node
from metatree_routers.index.title_mentions import title_term
from metatree_routers.query.names import squashed

_ASSIGNED = re.compile(r"^(?: {4}|\t)?([A-Za-z_]\w{2,})[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
_OVERLOAD = re.compile(r"[?!=]?@\d+$|<.*>|[?!=]$")
"""What tells definitions of one name apart, and what a name has that nobody says: `read@2`, `List<T>`, `empty?`."""
_MAX_SUFFIX = 6
_JOINED = re.compile(r"[_\-/{}.]+|(?<=[a-z0-9])(?=[A-Z])")

TOOL_KINDS = frozenset({"tool", "action", "mcp tool", "api operation"})
"""Kinds of nodes that are tools: what they are for is said in a line or two."""
HEAD_CHARS = 200
"""Measured on questions over papers, filings and conversations: as good as the whole text, in a third of the time."""


@dataclass(frozen=True, slots=True)
class NodeText:
    """The text of a node, by field."""

    title: str
    about: str
    content: str
    exact: tuple[str, ...] = ()
    """Terms kept as they are: `=name` for a name that is defined here, `:name` for the same, and for the stem of a
    file, without case and signs, `/a/b.py` for each end of a file's path, `~title` for a title that is a name."""
    is_tool: bool = False

    def head(self) -> str:
        """Return what its vector is made of: title, description, and the beginning of the content.

        Of a tool in lower case, its name cut into words: `FinanceTool` has tokens that no request has.
        """
        title = " ".join(_JOINED.split(self.title)) if self.is_tool else self.title
        text = f"{title}\n{self.about}"
        if len(text) < HEAD_CHARS:
            text = f"{text}\n{self.content[: HEAD_CHARS - len(text)]}"
        return text.lower() if self.is_tool else text

    @classmethod
    def of(cls, node: Node, content: str) -> NodeText:
        """Take the text out of a node; `content` is empty when it has none."""
        title = node.title
        path = node.path or node.id
        if node.kind in ("file", "folder") and "/" in path:
            title = path if path.endswith(node.title) else f"{path} {node.title}"
        # What a turn's description says for menus are the first words of the turn, which would count twice.
        about = [node.description] if node.kind != "turn" else []
        more = [str(node.attributes.get(key) or "") for key in ("signature", "docstring")]
        about += [text for text in more if text and text not in node.description]
        exact = tuple(_exact(node, path, content))
        return cls(title, "\n".join(about), content, exact, is_tool=node.kind in TOOL_KINDS)


_PACKAGE_FILES = frozenset({"__init__", "index", "lib", "main", "mod"})
"""Stems of files that stand for their folder."""


def file_stem(path: str) -> str:
    """Return what a file is called, without its suffix; of one that stands for its folder, what that is called.

    Example:
        >>> file_stem("src/requests/api.py"), file_stem("src/handler/mod.rs"), file_stem("index.js")
        ('api', 'handler', 'index')
    """
    *folders, name = path.strip("/").split("/")
    stem = name.partition(".")[0] or name.strip(".")
    return folders[-1] if stem.lower() in _PACKAGE_FILES and folders else stem


def path_ends(path: str) -> Iterator[str]:
    """Yield the ends of a path, shortest first, each with a `/` before it.

    Example:
        >>> list(path_ends("src/requests/api.py"))
        ['/api.py', '/requests/api.py', '/src/requests/api.py']
    """
    parts = path.strip("/").split("/")
    for length in range(1, min(len(parts), _MAX_SUFFIX) + 1):
        yield "/" + "/".join(parts[-length:])


def _exact(node: Node, path: str, content: str) -> Iterator[str]:
    named = title_term(node)
    if named is not None:
        yield named
    if node.kind == "file":
        yield from path_ends(path)
        if said := squashed(file_stem(path)):
            yield ":" + said
    elif node.kind in ("definition", "class", "function", "method"):
        name = _OVERLOAD.sub("", node.id.rpartition("::")[2]) or node.title
        yield "=" + name
        if "." in name:
            yield "=" + name.rpartition(".")[2]
        if said := squashed(name.rpartition(".")[2]):
            yield ":" + said
    elif content and path.endswith((".py", ".pyi")):
        yield from {"=" + match for match in _ASSIGNED.findall(content)}
