"""One file, read and outlined: the part of a build that is worth doing on several cores."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from metatree._util.private_keys import private_keys
from metatree._util.secret_text import SHAPES_VERSION, masked, without_secrets
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.storage.store import is_store_head
from metatree.trees.masking import is_code, masked_file
from metatree.trees.source_files import digest_bytes, mtime_of, read_inside
from metatree.trees.source_types import MemoryType, NotOfType, Outline, OutlinePart, SourceFile
from metatree.trees.text import encodable, is_binary
from metatree_memory_tools.build._outline_check import NoOutline, checked
from metatree_memory_tools.build._scan import ScannedFile
from metatree_memory_tools.code.generated import is_generated
from metatree_memory_tools.memory_types import FileType

_log = logging.getLogger("metatree")

LEFT_OUT = "-"
"""Name of the reader of a file that has no node."""

_STORE = "a store of metatree: give its folder as a source, as `tree:FOLDER`"

_HEAD = 8192
_MOST_TEXT_BYTES = 20_000_000
"""Of a file of plain text, whatever its type."""
_PROBLEM_CHARS = 300
_RACE_NS = 50_000_000
_COARSE_RACE_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FileNodes:
    """What a build keeps of one file."""

    path: str
    """In the tree: with the mount first, when it has several sources."""
    size: int
    mtime_ns: int
    """-1 when the file was so fresh that another change might leave the time as it is."""
    ctime_ns: int
    digest: str
    encoding: str = ""
    reader: str = LEFT_OUT
    nodes: tuple[tuple[Node, str], ...] = ()
    """Each with the id of its parent, parents first; the first is the file's own. None: it is left out."""
    facts: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why it is left out, or not read in full."""
    same: bool = False
    """Whether its bytes are as they were, so that nothing else was looked at."""


class ReadElsewhere(Exception):
    """The file is of a type that is not to be read in this process."""


def reader_names(types: Sequence[FileType], *, secrets: bool) -> list[str]:
    """Return what memory types are called as readers of a file, with or without the secrets in it."""
    return [_reader(each.kind, secrets) for each in types]


def _reader(kind: MemoryType, secrets: bool) -> str:
    return f"{kind.name} {kind.version}{'+' if secrets else '-'}{SHAPES_VERSION}"


def read_file(
    root: Path,
    scanned: ScannedFile,
    max_file_bytes: int,
    known: tuple[str, str] | None,
    types: Sequence[FileType],
    *,
    secrets: bool = False,
    left_out: frozenset[str] = frozenset(),
    here: frozenset[str] | None = None,
) -> FileNodes:
    """Read one file and return its nodes; never raises for what a file holds or how it can be reached.

    Args:
        root: the source.
        scanned: the file.
        max_file_bytes: a larger file becomes a node without content.
        known: digest and reader of the file as it was built before.
        types: the memory types, in the order in which they are asked; the last takes everything.
        secrets: whether what looks like keys and passwords stays as it is.
        left_out: the identities of parts that are passed over, by types that can.
        here: names of the types that are read in this process; None for all.

    Raises:
        ReadElsewhere: it is of another type.
    """
    now = time.time_ns()
    unread = FileNodes(scanned.id, scanned.size, scanned.mtime_ns, scanned.ctime_ns, "")
    raw = scanned.path if scanned.raw is None else scanned.raw
    try:
        limit = max_file_bytes
        if scanned.size > limit:
            head = read_inside(root, raw, limit=_HEAD, links=False)[0]
            if is_store_head(head) and not scanned.alone:
                return replace(unread, problem=_STORE)
            large = _type_of(types, scanned.path, head, is_binary(head), here)
            limit = max(limit, _room(large, scanned.path, head) if large is not None else 0)
            if scanned.size > limit:
                return _huge(unread, scanned, large, limit, max_file_bytes)
        data, state = read_inside(root, raw, limit=limit + 1, links=False)
    except UserError as exc:
        return replace(unread, problem=str(exc))
    except OSError as exc:
        return replace(unread, mtime_ns=-1, problem=f"cannot be read: {exc.strerror}")
    age = now - state.st_mtime_ns
    fresh = age < (_COARSE_RACE_NS if state.st_mtime_ns % 1_000_000_000 == 0 else _RACE_NS)
    mtime_ns = -1 if fresh else mtime_of(state)
    digest = digest_bytes(data)
    unread = FileNodes(scanned.id, state.st_size, mtime_ns, state.st_ctime_ns, digest)
    if is_store_head(data) and not scanned.alone:
        return replace(unread, problem=_STORE)
    binary = is_binary(data)
    file_type = _type_of(types, scanned.path, data[:_HEAD], binary, here)
    if file_type is None:
        return replace(unread, problem="a binary file")
    kind = file_type.kind
    if scanned.path.lower().endswith((".svg", ".svgz")) and kind.name == "text":
        return replace(unread, problem="a picture")
    reader = _reader(kind, secrets)
    if known == (digest, reader):
        return replace(unread, reader=reader, same=True)
    hidden = 0
    # A document may hold nothing but text, too: its bytes are another program's, and a text of them takes three times
    # their memory.
    encoded = file_type.traits.encoded(scanned.path, data[:_HEAD])
    is_text = not (binary or file_type.traits.binary or encoded)
    if not secrets and is_text:
        data, hidden, what = masked_file(scanned.path, data)
        if what and not scanned.alone:
            return replace(unread, problem=f"may hold secrets: {what}")
    file = SourceFile(scanned.path, data, secrets, left_out if file_type.traits.leaves_out else frozenset())
    source_type = kind.source_type
    try:
        outline = checked(kind.outline(file))
    except NotOfType:
        others = types[types.index(file_type) + 1 :]  # it is read again, within their limits
        return read_file(
            root, scanned, max_file_bytes, known, others, secrets=secrets, left_out=left_out, here=here
        )
    except (Exception, SystemExit) as exc:  # a type of another package that does not keep to its word
        what = (
            f"{exc}{_piece_by_piece(file_type)}"
            if isinstance(exc, NoOutline)
            else f"{type(exc).__name__}: {exc}"
        )
        # It may say what it has read. Masked first, since what is cut in a key is none.
        failed = encodable(f"the type {kind.name!r} failed: {masked(what)[0]}"[:_PROBLEM_CHARS])
        _log.warning("%s: %s", scanned.path, failed)
        if binary or (encoded and not secrets):  # of a text in pieces, nobody knows what would be a key
            return replace(unread, problem=failed)
        outline, source_type = Outline(problem=failed, attributes={"note": failed}), "text"
        if not is_text:  # it is read as one now
            is_text = True
            if not secrets:
                data, hidden, what = masked_file(scanned.path, data)
                if what and not scanned.alone:
                    return replace(unread, problem=f"may hold secrets: {what}")
            file = SourceFile(scanned.path, data, secrets)
    if (
        not secrets
    ):  # of a text, too: letters and escapes of programs are decoded after the file was looked at
        outline = _public(outline, code=is_text and is_code(scanned.path))
    # Of what is masked in other places, or not at all any more, the index of words must learn.
    held = digest_bytes(data) if hidden else digest
    facts: dict[str, Any] = {"summary": outline.summary, "imports": outline.imports}
    for name, declared in (("references", outline.references), ("declares", outline.declares)):
        if declared:
            facts[name] = declared
    if hidden:
        facts["masked"] = hidden
        plural = "" if hidden == 1 else "s"
        note = f"{hidden} key{plural} or password{plural} in it masked"
        attributes = {**outline.attributes, "masked": note}
        outline = replace(outline, attributes=attributes)
    if scanned.raw is not None:
        facts["raw"] = scanned.raw.hex()
    return replace(
        unread,
        encoding=file.encoding if is_text else "",
        reader=reader,
        nodes=tuple(_nodes(scanned.id, file, held, outline, source_type, "" if is_text else reader)),
        facts=facts,
        problem=outline.problem,
    )


def _public(outline: Outline, *, code: bool) -> Outline:
    """Return what a type says of a file with what looks like secrets masked."""
    # All of it at once first: one by one takes as long as half of a build, and hardly any file has one. One kind behind
    # the other: the lines of a private key may be headings that follow each other.
    said = [
        outline.description,
        outline.summary,
        outline.problem,
        *map(str, outline.attributes.values()),
        *(text for row in (*outline.references, *outline.declares) for text in row),
        *(text for _, module, names in outline.imports for text in (module, *chain(*names))),
        *chain(*zip(*_texts(outline.parts), strict=True)),
    ]
    together = list(dict.fromkeys(said))
    joined = "\n".join(together)
    if not masked(joined, code=code)[1]:
        return outline
    keys = sorted(private_keys(joined))
    starts, ends = [start for start, _ in keys], list(accumulate((end for _, end in keys), max))
    places = accumulate((len(text) + 1 for text in together), initial=0)
    of_keys = {
        text
        for text, at in zip(together, places, strict=False)
        if text and (before := bisect_left(starts, at + len(text))) and ends[before - 1] > at
    }

    def hide(text: str) -> tuple[str, int]:
        return ("*" * len(text), 1) if text in of_keys else masked(text, code=code)

    def public(part: OutlinePart, told: bool = False) -> OutlinePart:
        title, in_title = hide(part.title)
        told = told or bool(in_title or hide(part.id)[1])  # ids are made of titles, and of those above
        return replace(
            part,
            id=_hashed_id(part.id) if told else part.id,
            title=title,
            description=hide(part.description)[0],
            attributes=without_secrets(part.attributes, hide)[0],
            parts=tuple(public(each, told) for each in part.parts),
        )

    return replace(
        outline,
        description=hide(outline.description)[0],
        summary=hide(outline.summary)[0],
        problem=hide(outline.problem)[0],
        attributes=without_secrets(outline.attributes, hide)[0],
        parts=tuple(map(public, outline.parts)),
        imports=tuple(
            (level, hide(module)[0], tuple((hide(name)[0], hide(known)[0]) for name, known in names))
            for level, module, names in outline.imports
        ),
        references=_public_rows(outline.references, hide),
        declares=_public_rows(outline.declares, hide),
    )


def _hashed_id(part_id: str) -> str:
    """Return another id for a part, whose own says a secret: ids that were masked could be the same."""
    return f"#masked-{blake2b(part_id.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _public_rows(
    rows: tuple[tuple[str, str], ...], hide: Callable[[str], tuple[str, int]]
) -> tuple[tuple[str, str], ...]:
    return tuple((kind, hide(value)[0]) for kind, value in rows)


def _texts(parts: Iterable[OutlinePart]) -> Iterator[tuple[str, str, str, str]]:
    """Yield id, title, description and attributes of all parts, without what another of them says already."""
    for part in parts:
        more = [value for value in map(str, part.attributes.values()) if value not in part.description]
        yield "" if part.id == f"::{part.title}" else part.id, part.title, part.description, "\n".join(more)
        yield from _texts(part.parts)


def _type_of(
    types: Sequence[FileType], path: str, head: bytes, binary: bool, here: frozenset[str] | None
) -> FileType | None:
    """Return the type of a file; None for one that is no text and that no type of such files knows."""
    found = next((each for each in types if _knows(each, path, head, binary)), None)
    if found is not None and here is not None and found.kind.name not in here:
        raise ReadElsewhere
    return found


def _knows(file_type: FileType, path: str, head: bytes, binary: bool) -> bool:
    """Ask a type whether it knows a file; one that raises does not."""
    try:
        return file_type.knows(path, head, binary=binary)
    except (Exception, SystemExit) as exc:
        _log.warning("%s: the type %r failed: %s: %s", path, file_type.kind.name, type(exc).__name__, exc)
        return False


def _room(of: FileType, path: str, head: bytes) -> int:
    """Return up to which size a type reads a file."""
    traits = of.traits
    is_text = not (is_binary(head) or traits.binary or traits.encoded(path, head))
    return min(traits.max_file_bytes, _MOST_TEXT_BYTES) if is_text else traits.max_file_bytes


def _piece_by_piece(of: FileType) -> str:
    return f"; `metatree build {of.traits.larger}FILE` reads it piece by piece" if of.traits.larger else ""


def _huge(
    unread: FileNodes, scanned: ScannedFile, of: FileType | None, limit: int, max_file_bytes: int
) -> FileNodes:
    """Return the node of a file that is too large for its type; a binary file that no type knows has none."""
    if of is None:
        return replace(unread, problem="a binary file")
    note = f"too large to be read ({scanned.size / 1e6:.1f} MB, the limit is {limit / 1e6:.1f} MB)"
    note += _piece_by_piece(of)
    attributes = {"path": scanned.id, "size_bytes": scanned.size, "note": note}
    name = scanned.path.rpartition("/")[2]
    description = f"A file of {scanned.size / 1e6:.1f} MB: {note}."
    node = Node(scanned.id, _title(name), description, kind="file", attributes=attributes)
    node = _digested(node, f"{scanned.size} {scanned.mtime_ns}")
    nodes = ((node, _folder(scanned.id)),)
    return replace(unread, reader=f"huge {max_file_bytes}", nodes=nodes, problem=note)


def _nodes(
    path: str, file: SourceFile, digest: str, outline: Outline, source_type: str, masked_by: str
) -> list[tuple[Node, str]]:
    """Return the nodes of a file; `masked_by` is part of their digests where content is masked when it is read."""
    attributes = dict(outline.attributes)
    attributes["size_bytes"] = len(file.data)
    generated = source_type == "text" and is_generated(file.text)
    if generated:
        attributes["generated"] = True
    source = None
    has_content = bool(file.data) if source_type != "text" else bool(file.text.strip())
    if not outline.parts and has_content and not outline.empty:
        source = Source(type=source_type, path=path)
    else:
        attributes["path"] = path
    node = Node(
        path, _title(file.name), outline.description, kind="file", source=source, attributes=attributes
    )
    held_here = digest + masked_by if source else ""
    nodes = [(_digested(node, f"{held_here} generated" if generated else held_here), _folder(path))]
    _add_parts(nodes, path, file, outline.parts, path, source_type, masked_by)
    return nodes


def _add_parts(
    nodes: list[tuple[Node, str]],
    path: str,
    file: SourceFile,
    parts: tuple[OutlinePart, ...],
    parent: str,
    source_type: str,
    masked_by: str,
) -> None:
    for part in parts:
        attributes = {**part.attributes, "start_line": part.start_line, "end_line": part.end_line}
        source, content = None, ""
        if part.parts or not part.start_line:
            attributes["path"] = path
        else:
            ranges = part.ranges if len(part.ranges) > 1 else ()
            source = Source(
                type=source_type,
                path=path,
                start_line=part.start_line,
                end_line=part.end_line,
                parts=ranges,
            )
            content = (part.digest or _text_of(file, part)) + masked_by
        node_id = path + part.id
        node = Node(
            node_id,
            _title(part.title),
            part.description,
            kind=part.kind,
            source=source,
            attributes=attributes,
        )
        nodes.append((_digested(node, content), parent))
        _add_parts(nodes, path, file, part.parts, node_id, source_type, masked_by)


def _text_of(file: SourceFile, part: OutlinePart) -> str:
    ranges = part.ranges if len(part.ranges) > 1 else ((part.start_line, part.end_line),)
    return "\n".join("\n".join(file.lines[first - 1 : last]) for first, last in ranges)


def _digested(node: Node, content: str) -> Node:
    """Return a node with a digest of what it says and holds, but not of where in the file it is."""
    text = f"{node.kind}\0{node.title}\0{node.description}\0{content}"
    object.__setattr__(node, "digest", blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest())
    return node


def _title(name: str) -> str:
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "."
