"""Find what a question names outright: files, dotted names, definitions, imports, frames of a traceback, links.

The text alone is read; what the mentions point to in a tree, `evidence.signals.linker` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from metatree_routers.query.parse import CODE, PROSE, TITLE, TRACEBACK, Sections
from metatree_routers.query.stack_frames import CODE_SUFFIXES, frames, is_frame, is_python_frame

_PATH = re.compile(rf"(?<![\w.~+/\\-])(?:[A-Za-z]:)?[\w.~+/\\-]*[\w-]\.(?:{CODE_SUFFIXES})\b(?!\.\w)")
_LINKED = re.compile(rf"https?://[^/\s]+/([^\s?#()<>\"']+\.(?:{CODE_SUFFIXES}))(?![\w.-]|(?:\?[^\s:]*)?:\d)")
"""A page, and not the place in a script that a browser was at: those are frames."""
_NAME = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|(?<=\w)#(?=[a-z]))[A-Za-z_]\w*){0,9}")
_MEMBER = re.compile(r"::|->|#")
"""What stands between the names of a thing and of what is in it, in C++, Rust, PHP, Java and Ruby."""
_ABOVE = re.compile(r"^(?:(?:~|\.*)/+)+")
_TICKED = re.compile(r"(?<!`)`+([^`\n]{2,120})`+")
_IMPORT_FROM = re.compile(r"^[^\w\n]*from\s+([\w.]+)\s+import\s+\(?([^#\n]*(?:\n\s+[\w, ]+)*)", re.MULTILINE)
_IMPORT = re.compile(r"^[^\w\n]*import\s+([\w., ]+)", re.MULTILINE)
_MAX_MENTIONS = 400

SECTION_WEIGHT = {TITLE: 1.5, PROSE: 1.0, CODE: 0.6, TRACEBACK: 0.3}
FRAME_WEIGHT = 2.0
LINK_WEIGHT = 2.0
"""Who links to a file, most often to a line of it, has looked for the place and found it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that a question names."""

    kind: str
    """`path`, `frame`, `link`, `name`, or `import`."""
    text: str
    """A path, or a name with dots."""
    weight: float
    traced: bool = False
    """Whether it stands in a stack trace, and not in a sentence or a message that names a line of a file."""


def find_mentions(parts: Sections) -> list[Mention]:
    """List what the question names, each thing once, with the weight of its best place."""
    best: dict[tuple[str, str], Mention] = {}
    for mention in _all_mentions(parts):
        key = (mention.kind, mention.text)
        if key not in best or (mention.weight, mention.traced) > (best[key].weight, best[key].traced):
            best[key] = mention
        if len(best) >= _MAX_MENTIONS:
            break
    return list(best.values())


def _all_mentions(parts: Sections) -> Iterator[Mention]:
    for link in parts.links:
        linked = _LINKED.match(link)
        if linked:
            yield Mention("link", linked.group(1), LINK_WEIGHT)
    for section, text in parts.texts().items():
        weight = SECTION_WEIGHT[section]
        traced = section == TRACEBACK or any(
            is_frame(line) or is_python_frame(line) for line in text.split("\n")
        )
        for frame in frames(text):
            yield Mention("frame", _clean_path(frame), FRAME_WEIGHT, traced)
        if section != TRACEBACK:
            for match in _PATH.finditer(text):
                yield Mention("path", _clean_path(match.group()), weight)
        for match in _IMPORT_FROM.finditer(text):
            for name in match.group(2).replace("\n", ",").split(","):
                words = name.split()
                if words and words[0].isidentifier():
                    yield Mention("import", f"{match.group(1)}.{words[0]}", weight)
        for match in _IMPORT.finditer(text):
            for name in match.group(1).split(","):
                words = name.split()
                if words and "." in words[0]:
                    yield Mention("import", words[0], weight)
        ticked = {
            _MEMBER.sub(".", name) for span in _TICKED.finditer(text) for name in _NAME.findall(span.group(1))
        }
        for match in _NAME.finditer(text):
            name = _MEMBER.sub(".", match.group())
            called = text[match.end() : match.end() + 1] == "("
            if len(name) > 2 and (name in ticked or called or _looks_like_code(name)):
                yield Mention("name", name, weight)


def _looks_like_code(name: str) -> bool:
    return "." in name or "_" in name.strip("_") or bool(re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]", name))


def _clean_path(path: str) -> str:
    return _ABOVE.sub("", path.replace("\\", "/"))
