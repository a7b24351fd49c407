"""Forgetting what somebody said, or what was said at a time or comes from a source; and the proof that nothing is left.

What is forgotten goes out of the tree, out of the descriptions that quote it, and with `wipe` out of the journals of
runs that have ended, the results of tools, and boards. `traces` is the proof: it looks for the words themselves, in all
tables and in the bytes of the files, so that it does not rest on what `wipe` believes to have done.

Lost: keeping a list of what quotes what (it would have to be kept by all that write, and names what was forgotten).
"""

from __future__ import annotations

import json
import mmap
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from metatree._util.links import real
from metatree._util.zips import open_archive, open_member
from metatree.errors import UserError
from metatree.node import Node
from metatree.notes.left_out import IDENTITY, leave_out
from metatree.notes.notes import IMPORT, Forgotten, claims, earlier_texts, forget, made_by, mentions
from metatree.notes.wishes import wishes_of
from metatree.storage.database import Database
from metatree.storage.store import Store
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import FILES, disk_root, is_path
from metatree.trees.tree import ROOT, Tree

_LEAST_CHARS: Final = 16
"""A shorter piece of a text says nothing by itself, unless it is all of the text."""
_MOST_PIECES: Final = 2_000
_BLOCK: Final = 1 << 20
_MOST_UNPACKED: Final = 2_000_000_000
"""Bytes: what a look unpacks of all files together; a zip of kilobytes may hold many gigabytes."""
_COPIES: Final = frozenset({".db", ".sqlite", ".sqlite3", ".bak", ".backup", ".metatree", ".zip", ".jsonl"})
_PACKED: Final = re.compile(r"\.(?:gz|tgz|bz2|xz|zst|7z)$")
_PIECE = re.compile(r"(?<=[.!?])\s+|\n+")
_COLUMNS: Final = (
    ("node", "title", "id"),
    ("node", "description", "id"),
    ("node", "provenance", "id"),
    ("node", "attributes", "id"),
    ("content", "text", "id"),
    ("override", "title", "id"),
    ("override", "description", "id"),
    ("meta", "value", "key"),
    ("mail", "value", "run"),
    ("fact", "value", "memory"),
)
"""Where a memory keeps words, beside journals, calls and boards: table, column, what names the row."""


_TIME: Final = re.compile(
    r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)
"""ISO 8601, or its beginning. A word would be compared as a text, fit nothing, and be called forgotten."""


@dataclass(frozen=True, slots=True)
class Said:
    """Which sayings are meant; all that is given must hold."""

    who: str | None = None
    source: str | None = None
    since: str = ""
    """The first day or moment, in ISO 8601."""
    until: str = ""
    """The last one, included: `2026-05` is to the end of May."""
    node: str | None = None
    """Only what is said in this node."""

    def __post_init__(self) -> None:
        if not (self.who or self.source or self.since or self.until):
            raise UserError("say whose, from where or when: by whom, a source, or a time")
        for time in (self.since, self.until):
            if time and not _TIME.fullmatch(time):
                raise UserError(
                    f"{time!r} is no time: give a day or a moment, such as 2026-05-31 or 2026-05-31T09:00"
                )

    def chosen(self, nodes: Iterable[Node]) -> dict[str, Node]:
        """Return the nodes in which something is said that is meant, by id."""
        return {
            node.id: node
            for node in nodes
            if self.node in (None, node.id) and any(map(self.fits, _sayings(node)))
        }

    def fits(self, mention: dict[str, Any]) -> bool:
        """Whether one saying is meant."""
        at = str(mention.get("at") or "")
        return (
            (self.who is None or mention.get("who") == self.who)
            and (self.source is None or mention.get("source") == self.source)
            and (not self.since or at >= self.since)
            and (not self.until or ("" < at[: len(self.until)] <= self.until))
        )


@dataclass(slots=True)
class Erased:
    """What was forgotten. The texts are here alone, for the proof: nothing keeps them."""

    nodes: list[str] = field(default_factory=list)
    """Ids of what is gone."""
    left_to_others: list[str] = field(default_factory=list)
    """Ids of what others said too: the saying is gone, and what was replaced; the text is theirs."""
    texts: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """Of files among others in which messages stand; the files have them still."""
    titles: dict[str, str] = field(default_factory=dict)
    """What they were called, by id, for the person who asked."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A place that still has words of what was forgotten."""

    place: str
    """A file, or a table of one."""
    what: str
    """The node, run, board or key there; empty for the bytes of a file."""


def forget_said(tree: Tree, said: Said) -> Erased:
    """Forget all that fits, in one transaction; what others said too stays theirs.

    What lies below a forgotten node and does not fit moves up. Messages of exports that fit are left out of the tree
    from then on. Raises `UserError` for what was built from another source, and for an export that cannot be read.
    """
    erased = Erased()
    with tree.memory.durable(), tree.memory.transaction():
        chosen = said.chosen(_added(tree))
        for node_id, node in chosen.items():
            if node_id not in tree:
                continue  # it went with what it lay under
            others = [mention for mention in _sayings(node) if not said.fits(mention)]
            if others:
                _leave_to(tree, node, others, erased)
            else:
                _forget_one(tree, node_id, chosen.keys(), erased)
    if messages := said.chosen(_exported(tree, said)):
        texts = [tree.get(node_id) for node_id in messages]
        leave_out(tree, texts)
        _note(erased, Forgotten(tuple(texts), ROOT))
    return erased


def by_files(tree: Tree, said: Said) -> list[str]:
    """Return the ids of files that say in their front matter that they are by whom is meant, and from when.

    They are their keeper's: `forget_said` leaves them alone.
    """
    if said.who is None or said.node is not None:
        return []
    rows = tree.index.rows(
        "SELECT id, json_extract(attributes, '$.at'), json_extract(attributes, '$.why') FROM node"
        " WHERE kind = 'file' AND json_extract(attributes, '$.who') = ? ORDER BY id",
        (said.who,),
    )
    return [
        node_id
        for node_id, at, why in rows
        if node_id in tree and said.fits({"who": said.who, "at": at, "source": why})
    ]


def meant(tree: Tree, said: Said) -> Erased:
    """Return what `forget_said` would forget, and change nothing; wishes go with what states them."""
    erased = Erased()
    chosen = said.chosen(_added(tree))
    with_them = {wish.id for node_id in chosen for wish in wishes_of(tree, node_id)}
    for node_id, node in chosen.items():
        if node_id in with_them:
            continue
        if not all(map(said.fits, _sayings(node))):
            erased.left_to_others.append(node_id)
            continue
        below = [child.id for child in tree.children(node_id) if child.id in chosen or not _sayings(child)]
        going = [node_id, *(each for child in below for each in _going(tree, child, chosen.keys()))]
        erased.nodes += [each for each in going if each not in erased.titles]
        erased.titles |= {each: f": {tree.get(each).title}" for each in going}
    messages = said.chosen(_exported(tree, said))
    erased.nodes += messages
    erased.titles |= {each: f": {node.description}" for each, node in messages.items()}
    return erased


def _going(tree: Tree, node_id: str, chosen: Collection[str]) -> Iterator[str]:
    """Yield what goes with a forgotten node: all that lies under it, but what others said, and what is under that."""
    yield node_id
    for child in tree.children(node_id):
        if child.id in chosen or not _sayings(child):
            yield from _going(tree, child.id, chosen)


def erased_by(removal: Forgotten) -> Erased:
    """Return what `forget` took back, as the proof needs it."""
    erased = Erased()
    _note(erased, removal)
    return erased


def _note(erased: Erased, removal: Forgotten) -> None:
    erased.nodes += [each.id for each in removal.nodes]
    erased.titles |= {each.id: f": {each.title}" for each in removal.nodes}
    erased.texts += [text for each in removal.nodes for text in _texts(each)]
    erased.paths += [
        each.path for each in removal.nodes if IDENTITY in each.attributes and each.path is not None
    ]


def _forget_one(tree: Tree, node_id: str, chosen: Collection[str], erased: Erased) -> None:
    above = tree.ancestors(node_id)
    theirs = [each for _, each in tree.walk(node_id) if each.id not in chosen and _sayings(each)]
    for each in theirs:  # however deep it lies, and with what lies under it
        if node_id in tree.ancestors(each):
            tree.move(each, above[-1])
    removal = forget(tree, tree.get(node_id))
    _note(erased, removal)
    texts = [text for each in removal.nodes for text in _texts(each)]
    for node in filter(None, map(tree.find, reversed(above))):
        _redescribe(tree, node, str(removal.nodes[0].provenance.get("who", "")), texts)


def _redescribe(tree: Tree, node: Node, who: str, texts: Sequence[str]) -> None:
    """Take the words and the speaker out of what a node above says of what lay below it."""
    if not node.provenance and node.kind not in ("session", "conversation"):
        return
    attributes = dict(node.attributes)
    below = tree.children(node)
    speakers = attributes.get("speakers")
    if isinstance(speakers, list) and all(child.attributes.get("speaker") != who for child in below):
        attributes["speakers"] = [each for each in speakers if each != who]
    begins = node.description.rpartition(" — ")[2].rstrip("…").strip()
    quotes = bool(begins) and any(begins in " ".join(text.split()) for text in texts)
    description = ", ".join(attributes.get("speakers") or ()) if quotes or not below else node.description
    if (description, attributes) != (node.description, dict(node.attributes)):
        tree.update(replace(node, description=description, attributes=attributes))


def _leave_to(tree: Tree, node: Node, others: list[dict[str, Any]], erased: Erased) -> None:
    """Take sayings out of a memory that others said too; what it replaced was the text of one of them."""
    provenance = {key: value for key, value in node.provenance.items() if key != "earlier"}
    if provenance.get("by") == IMPORT:
        tree.update(replace(node, attributes={**node.attributes, "said": others}))
        erased.left_to_others.append(node.id)
        return
    erased.texts += [each["text"] for each in earlier_texts(node)]
    tree.update(replace(node, provenance={**provenance, **others[-1], "said": others}))
    erased.left_to_others.append(node.id)


def _added(tree: Tree) -> Iterator[Node]:
    rows = tree.memory.rows(
        "SELECT id FROM node WHERE provenance IS NOT NULL AND provenance <> '{}' ORDER BY seq"
    )
    for (node_id,) in rows:
        node = tree.find(node_id)
        if node is not None:
            yield node


def _exported(tree: Tree, said: Said) -> Iterator[Node]:
    """Yield the messages of exports, which the tree can be read without; those of one person where one is meant."""
    if said.node is not None:
        return
    rows = tree.index.rows(
        f"SELECT id FROM node WHERE kind = 'turn' AND json_extract(attributes, '$.{IDENTITY}') IS NOT NULL"
        " AND (:who IS NULL OR json_extract(attributes, '$.speaker') = :who) ORDER BY seq",
        {"who": said.who},
    )
    yield from filter(None, (tree.find(node_id) for (node_id,) in rows))


def _sayings(node: Node) -> list[dict[str, Any]]:
    """Return who said a node, when and where from, each time."""
    if IDENTITY in node.attributes:
        about = node.attributes
        source = node.id.partition("/")[0] if node.source is None else node.source.path
        return [{"who": about.get("speaker"), "at": about.get("at"), "source": source}]
    return mentions(node) or claims(node) or made_by(node)


def _texts(node: Node) -> list[str]:
    earlier = [each["text"] for each in earlier_texts(node)]
    if IDENTITY in node.attributes and node.content:  # an export has who said it, and when, elsewhere
        return [node.content.partition(f"{node.attributes.get('speaker')}: ")[2] or node.content]
    return [text for text in (node.content or node.description or node.title, *earlier) if text.strip()]


def pieces(texts: Iterable[str]) -> list[str]:
    """Return what is looked for: the sentences and lines of texts, and short texts as they are."""
    found: dict[str, None] = {}
    for text in texts:
        parts = [part.strip() for part in _PIECE.split(text)]
        long = [part for part in parts if len(part) >= _LEAST_CHARS]
        found.update(dict.fromkeys(long or [text.strip()]))
    return [piece for piece in found if piece][:_MOST_PIECES]


def wipe(tree: Tree, texts: Sequence[str]) -> list[str]:
    """Delete what quotes texts beside the tree: journals of ended runs, results of tools, items of boards.

    Returns:
        What was deleted: `run ID`, `board ID`, `call NAME`.
    """
    store, done = tree.memory, list[str]()
    # A letter or a word stands in every record: what is as short is deleted where it is all that a value says.
    forms = [
        form if len(piece) >= _LEAST_CHARS else f'"{form}"'
        for piece in pieces(texts)
        for form in _forms(piece)
    ]
    store.execute("PRAGMA secure_delete=ON")
    try:
        with store.durable(), store.transaction():
            for number, run_id, ended in _quoting_runs(store, forms):
                if ended not in (None, "waiting"):
                    for table in ("journal", "mail"):
                        store.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
                    store.execute("DELETE FROM run WHERE number = ?", (number,))
                    done.append(f"run {run_id}")
            for hash_, tool in _holding(store, "call", ("arguments", "result"), "hash, tool", forms):
                store.execute("DELETE FROM call WHERE hash = ?", (hash_,))
                done.append(f"call {tool}")
            for number, item in _holding(store, "item", ("data", "sources"), "number, id", forms):
                store.execute(
                    "UPDATE item SET removed = 1, data = '', tokens = 0, image = '', sources = NULL,"
                    " version = version + 1, changed = (SELECT max(changed) + 1 FROM item) WHERE number = ?",
                    (number,),
                )
                done.append(f"board {item}")
    finally:
        store.execute("PRAGMA secure_delete=OFF")
    return list(dict.fromkeys(done))


def settle(*stores: Store) -> None:
    """Write stores anew, with what is in their logs: a row that was moved in its file leaves its old words there."""
    for store in stores:
        if store.path is not None and not store.read_only:
            store.execute("VACUUM")
            store.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def traces(tree: Tree, texts: Sequence[str], paths: Collection[str] = ()) -> list[Trace]:
    """Return every place that still has words of these texts: tables of the memory, and files beside it, backups too.

    Args:
        paths: files of the tree that are looked through, too.

    What several machines share (`tree.shared`) is looked through as well; nothing there is deleted by `wipe`.
    What a text shares with a node that is still there is not looked for.
    """
    wanted = [piece for piece in pieces(texts) if not _is_still_said(tree, piece)]
    forms = [form for piece in wanted for form in _forms(piece)]
    if not forms:
        return []
    store, found = tree.memory, list[Trace]()
    for table, column, name in _COLUMNS:
        rows = _holding(store, table, (column,), name, forms)
        found += [Trace(f"{store.name}: {table}", str(row[0])) for row in rows]
    found += _traces_of_runs(store, forms)
    if tree.shared is not None:
        found += _traces_of_runs(tree.shared.boards, forms)
    named = {trace.place.partition(":")[0] for trace in found}
    room = _Room()
    exports = _exports(tree, paths)
    # A source has no link on its way: one that is there now leads to what is none of the tree.
    linked = {file for file in exports if real(file) != file}
    found += [Trace(str(file), "not looked into: a link leads elsewhere now") for file in sorted(linked)]
    for file in sorted(_stores_and_copies(tree) | exports - linked):
        if str(file) in named or not file.is_file():
            continue
        holds = None if _PACKED.search(file.name) else _has_bytes(file, forms, room)
        if holds or holds is None:
            found.append(Trace(str(file), "" if holds else "not looked into: it is packed"))
    return list(dict.fromkeys(found))


def _traces_of_runs(store: Database, forms: Sequence[str]) -> Iterator[Trace]:
    """Yield what has words of texts among runs, calls of tools and boards, in a file or on a server."""
    for _, run_id, _ in _quoting_runs(store, forms):
        yield Trace(f"{store.name}: journal", run_id)
    for _, tool in _holding(store, "call", ("arguments", "result"), "hash, tool", forms):
        yield Trace(f"{store.name}: call", str(tool))
    for _, item in _holding(store, "item", ("data", "sources"), "number, id", forms):
        yield Trace(f"{store.name}: board", str(item))


def _is_still_said(tree: Tree, piece: str) -> bool:
    rows = tree.memory.rows("SELECT id FROM content WHERE instr(text, ?) LIMIT 5", (piece,))
    return any(row[0] in tree for row in rows)


def _forms(piece: str) -> list[str]:
    """Return a text as it is, and as JSON has it."""
    return list(dict.fromkeys((piece, *(json.dumps(piece, ensure_ascii=way)[1:-1] for way in (False, True)))))


def _holding(
    store: Database, table: str, columns: Sequence[str], names: str, forms: Sequence[str]
) -> list[tuple[Any, ...]]:
    rows: dict[tuple[Any, ...], None] = {}
    position = "strpos" if store.shared else "instr"
    for form in forms:
        where = " OR ".join(f"{position}({column}, ?) > 0" for column in columns)
        found = store.rows(f"SELECT DISTINCT {names} FROM {table} WHERE {where}", (form,) * len(columns))
        rows.update(dict.fromkeys(found))
    return list(rows)


def _quoting_runs(store: Database, forms: Sequence[str]) -> list[tuple[int, str, str | None]]:
    numbers = {row[0] for row in _holding(store, "journal", ("body",), "run", forms)}
    return [
        (number, run_id, ended)
        for number, run_id, ended in store.rows("SELECT number, id, ended FROM run ORDER BY number")
        if number in numbers
    ]


def _stores_and_copies(tree: Tree) -> set[Path]:
    """Return the files that a tree consists of, and copies that lie beside it."""
    if tree.path is None:
        return set()
    folder = tree.path if tree.path.is_dir() else tree.path.parent
    beside = [folder, folder.parent] if tree.path.is_dir() else [folder]
    inner = set(folder.rglob("*")) if tree.path.is_dir() else set()
    near = {file for place in beside for file in place.iterdir() if _may_be_copy(file)}
    return {file for file in inner | near if not file.is_symlink()}


def _exports(tree: Tree, paths: Collection[str]) -> set[Path]:
    """Return the files of exports that a tree is built from, and a link that is in the place of one.

    Args:
        paths: files among others that hold conversations.
    """
    read = {
        Path(source.location) for source in tree.sources() if source.type not in FILES and is_path(source)
    }
    among = {
        root / path.removeprefix(f"{source.mount}/" if source.mount else "")
        for source in tree.sources()
        for path in paths
        if (not source.mount or f"{path}/".startswith(f"{source.mount}/"))
        and (root := _root(source)) is not None
    }
    inside = {file for place in read if place.is_dir() and real(place) == place for file in place.rglob("*")}
    return read | among | {file for file in inside if not file.is_symlink()}


def _root(source: SourceRef) -> Path | None:
    try:
        return disk_root(source)
    except UserError:  # something else stands in its place
        return None


def _may_be_copy(file: Path) -> bool:
    return file.suffix in _COPIES or file.name.endswith("~") or _PACKED.search(file.name) is not None


@dataclass(slots=True)
class _Room:
    """How much may still be unpacked."""

    left: int = field(default_factory=lambda: _MOST_UNPACKED)


def _has_bytes(file: Path, forms: Sequence[str], room: _Room) -> bool | None:
    """Whether a file, or a member of a zip as exports are, holds one of these texts; None if it stays packed."""
    wanted = [form.encode("utf-8", "surrogatepass") for form in forms]
    try:
        state = file.stat()
        if not state.st_size:
            return False
        if state.st_size > _MOST_UNPACKED and state.st_blocks * 512 < state.st_size // 2:  # mostly holes
            return None
        if zipfile.is_zipfile(file):
            try:
                with open_archive(file) as packed:
                    return any(_in_member(packed, name, wanted, room) for name in packed.namelist())
            except zipfile.BadZipFile:  # of a member too: it is damaged, or packed by another method
                return None
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return any(data.find(form) >= 0 for form in wanted)
    except (OSError, zipfile.BadZipFile):
        return False
    except (
        Exception
    ):  # a password is needed, a way of packing is not known, or it is damaged in one of many ways
        return None


def _in_member(packed: zipfile.ZipFile, name: str, wanted: Sequence[bytes], room: _Room) -> bool:
    overlap = max(map(len, wanted))
    end = b""
    with open_member(packed, name) as member:
        while block := member.read(_BLOCK):
            room.left -= len(block)
            if room.left < 0:
                raise EOFError("it unpacks to more than is looked into")
            if any(form in end + block for form in wanted):
                return True
            end = (end + block)[-overlap:]
    return False
