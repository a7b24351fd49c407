"""What notes say of themselves and of each other: front matter, links, tags, names of blocks, days.

As Obsidian, Logseq and agents' memory folders write them. Front matter is read line by line, as far as people fill it
in: texts, lists on one line or below. Lost: a YAML parser, which is one more thing to install, fails as a whole on a
colon in a title, and unfolds a few bytes into gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

from metatree_memory_tools.text.unique_names import slug

_FRONT = re.compile(r"\ufeff?---[ \t]*\n(.*?)\n?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([^\W\d][\w .-]{0,60}?)\s*:(?:\s+(.*))?$")
_ITEM = re.compile(r"^\s*-\s+(.+)$")
_QUOTED = re.compile(r"^([\"'])(.*)\1$", re.DOTALL)
_PIECE = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|\[\[[^\]]{0,300}\]\]|[^,]+)\s*(?:,|$)")
_WIKI = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]")
_LINK = re.compile(
    r"\[[^\[\]\n]{0,300}\]\(\s*(?:<([^<>\n]{1,500})>|([^()\s]{1,500}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?))"
)
_DEFINED = re.compile(r"^ {0,3}\[[^\[\]\n]{1,300}\]:\s+<?(\S{1,500}?)>?(?:\s|$)", re.MULTILINE)
_IMPORTED = re.compile(r"(?:^|(?<=\s))@((?:\.{1,2}/)?[\w./-]{1,200}\.(?:md|markdown))\b")
_TAG = re.compile(r"(?:^|(?<=[\s(,;]))#([^\W\d_][\w/-]{0,99}|\d[\w/-]{0,98}[^\W\d_][\w/-]{0,98})")
_BLOCK = re.compile(r"(?:^|\s)\^([A-Za-z0-9][A-Za-z0-9-]{0,60})[ \t]*$")
_CODE = re.compile(r"`[^`\n]{1,1000}`|<!--.*?(?:-->|\Z)|https?://\S+", re.DOTALL)
_DAY = re.compile(r"^(\d{4})[-_. ]?(\d\d)[-_. ]?(\d\d)(?:\D|$)")
_MOST = 500
_MOST_CHARS = 300


@dataclass(slots=True)
class Note:
    """What a note says of itself and of others."""

    properties: dict[str, str | list[str]] = field(default_factory=dict)
    """The front matter, names in lower case."""
    body: str = ""
    """The text, with blank lines in place of the front matter."""
    tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    blocks: dict[str, int] = field(default_factory=dict)
    """The lines of blocks that have names (`^name`), counted from 1."""
    links: list[tuple[str, str]] = field(default_factory=list)
    """(`note`, name) for `[[name]]`, (`link`, address) for others; `#` and the slug of a heading may follow."""

    def text(self, *names: str) -> str:
        """Return the first of some properties that is there, as a text."""
        for name in names:
            value = self.properties.get(name)
            if value:
                return ", ".join(value) if isinstance(value, list) else value
        return ""


def note_of(text: str, outside_code: Callable[[list[str]], Iterable[str]]) -> Note:
    """Read what a note says of itself.

    Args:
        text: the file.
        outside_code: returns lines with blank ones in place of those that are code.
    """
    note = Note()
    note.properties, note.body = _front_matter(text)
    note.aliases = _listed(note.properties, "aliases", "alias")
    tags = [tag.lstrip("#") for tag in _listed(note.properties, "tags", "tag", words=True)]
    links = [_wiki(name) for value in note.properties.values() for name in _names(value)]
    for number, line in enumerate(outside_code(note.body.split("\n")), start=1):
        if not line or line.isspace():
            continue
        if (block := _BLOCK.search(line)) is not None and len(note.blocks) < _MOST:
            note.blocks.setdefault(block[1], number)
        line = line[: 20 * _MOST_CHARS]
        links += [_wiki(match[1]) for match in _WIKI.finditer(line)]
        links += [("link", match[1] or match[2]) for match in _LINK.finditer(line)]
        links += [("link", match[1]) for pattern in (_DEFINED, _IMPORTED) for match in pattern.finditer(line)]
        if "#" in line and not line.startswith("#!"):
            tags += [match[1] for match in _TAG.finditer(_CODE.sub(" ", line))]
    note.tags = list(dict.fromkeys(tag.strip("/") for tag in tags if tag.strip("/")))[:_MOST]
    elsewhere = ("#", "mailto:", "//")
    note.links = [
        (kind, name)
        for kind, name in dict.fromkeys(links)
        if name and not name.startswith(elsewhere) and "://" not in name
    ][: 10 * _MOST]
    return note


def _wiki(name: str) -> tuple[str, str]:
    """Return what `[[name#heading]]` leads to; a name alone is that of a note, wherever it lies.

    Of headings that lie in each other (`[[name#one#two]]`) the last is meant; a block (`#^name`) is none.
    """
    note, *headings = name.strip().rstrip("\\").split("#")
    note = note.partition("^")[0].strip()
    last = headings[-1].strip() if note and headings else ""
    return "note", note if not last or last.startswith("^") else f"{note}#{slug(last)}"


def _names(value: str | list[str]) -> Iterator[str]:
    for text in [value] if isinstance(value, str) else value:
        yield from (match[1] for match in _WIKI.finditer(text))


def _front_matter(text: str) -> tuple[dict[str, str | list[str]], str]:
    """Return the properties at the beginning of a text, and the text with blank lines in their place."""
    front = _FRONT.match(text)
    if front is None:
        return {}, text
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in front[1].split("\n"):
        line = line.rstrip()
        item, given = _ITEM.match(line), _FIELD.match(line)
        if item is not None and name and not isinstance(found.get(name), str):
            values = found.setdefault(name, [])
            if isinstance(values, list) and len(values) < _MOST:
                values.append(_plain(item[1]))
        elif given is not None and len(found) < _MOST:
            name = given[1].strip().lower()
            value = (given[2] or "").strip()
            if value.startswith("[") and value.endswith("]") and not value.startswith("[["):
                found[name] = [_plain(match[1]) for match in _PIECE.finditer(value[1:-1]) if match[1].strip()]
            elif value and value not in ("|", ">", "|-", ">-"):
                found[name] = _plain(value)
            else:
                found.pop(name, None)
        elif name and line.startswith((" ", "\t")) and line.strip() and not isinstance(found.get(name), list):
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()[: 10 * _MOST_CHARS]
    kept = {name: value for name, value in found.items() if value}
    return kept, "\n" * front[0].count("\n") + text[front.end() :]


def _plain(value: str) -> str:
    value = value.strip()
    quoted = _QUOTED.match(value)
    value = quoted[2] if quoted is not None else re.sub(r"(?<!\s)\s+#\s.*$", "", value)
    return value[: 10 * _MOST_CHARS].strip()


def _listed(properties: dict[str, str | list[str]], *names: str, words: bool = False) -> list[str]:
    """Return a property that is a list, however it is written; of one text its parts at commas, or its words."""
    for name in names:
        value = properties.get(name)
        if isinstance(value, list):
            return [each for each in value if each]
        if value:
            return [each.strip() for each in re.split(r"[,\s]+" if words else r",", value) if each.strip()]
    return []


def day_of(name: str) -> str:
    """Return the day that the name of a file begins with, as journals have it; empty when there is none.

    Example:
        >>> day_of("2024-05-17.md"), day_of("2024_05_17 standup.md"), day_of("20240517120000 x.md"), day_of("1984.md")
        ('2024-05-17', '2024-05-17', '2024-05-17', '')
    """
    match = _DAY.match(name) or re.match(r"^(\d{4})(\d\d)(\d\d)\d{0,6}\D", name)
    if match is None:
        return ""
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
    except ValueError:
        return ""


def shown(properties: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    """Return properties as the attributes of a node keep them: not too many, and not too long."""
    some = list(properties.items())[:40]
    return {
        name: value[:_MOST_CHARS] if isinstance(value, str) else [each[:_MOST_CHARS] for each in value[:40]]
        for name, value in some
    }
