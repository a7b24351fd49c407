"""Merge an archive into a tree: all of it or nothing, and what is there already stays.

| in both, and different | what happens |
|---|---|
| a node | both are kept: the one of the archive beside the other, as `ID~HASH` |
| a memory with the same text | one, with the sayings of both |
| what is said of a built node | what the tree says stays; what it does not say comes from the archive |
| a run | the longer journal, when one begins with the other; else that of the tree |
| an item of a board | the later version; else that of the tree |
| a call, a link, a fact | that of the tree |
| a permission | nothing comes from an archive unless it is asked for |
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from metatree.archive.form import DERIVED_FACTS, HERE, LOCAL_FACTS, PERMISSION_FACTS, SHARED_FACTS
from metatree.archive.reading import Archive, opened
from metatree.errors import BrokenStore, UserError
from metatree.layer import APPENDED, ROOT, Layer
from metatree.node import Node, Source, digest_of
from metatree.overlay import above
from metatree.placing import MEMORY_KIND
from metatree.process import is_dead
from metatree.remembering import known_text, merge_sayings, note_text, sayings
from metatree.secret_text import redacted, without_secrets
from metatree.tree import Tree

_ITEM = (
    *("section", "data", "tokens", "version", "at", "agent", "run", "step", "round", "sources", "audience"),
    *("pinned", "image", "base", "synced"),
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Something that the tree and the archive say differently."""

    what: str
    """`node`, `override`, `run`, `item`."""
    id: str
    kept: str
    """What was done, in words."""


@dataclass(slots=True)
class Imported:
    """What came of an import."""

    added: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many are new."""
    known: dict[str, int] = field(default_factory=dict)
    """Kind of thing -> how many were there already."""
    conflicts: list[Conflict] = field(default_factory=list)
    permissions_left_out: int = 0

    def count(self, what: str, new: bool) -> None:
        """Count one thing."""
        where = self.added if new else self.known
        where[what] = where.get(what, 0) + 1


def import_memory(tree: Tree, path: str | Path, *, permissions: bool = False) -> Imported:
    """Merge an archive into a tree; see the table of this module for what is in both.

    Importing the same archive again changes nothing.

    Args:
        permissions: whether permissions to call tools that change something are taken over too; they were given on
            another machine, perhaps by another person.

    Raises:
        UserError: there is no such file, or the tree cannot be written.
        BrokenStore: the file is cut off, damaged, of another program or of a newer version. Nothing was imported.
    """
    done = Imported()
    with opened(path) as archive, tree.memory.transaction():
        _Merge(tree, archive, done, permissions).all()
    return done


class _Merge:
    def __init__(self, tree: Tree, archive: Archive, done: Imported, permissions: bool) -> None:
        self.tree = tree
        self.store = tree.memory
        self.layer = Layer(tree.memory)
        self.archive = archive
        self.done = done
        self.permissions = permissions
        self.moved_runs: dict[str, int] = {}
        """Runs that are here as the archive has them, with their numbers."""

    def all(self) -> None:
        self.nodes()
        self.each("overrides", self.override)
        self.each("links", self.link)
        self.each("facts", self.fact)
        self.runs()
        self.each("mail", self.letter)
        self.each("calls", self.call)
        self.boards()
        self.each("images", self.image)
        self.each("rule_facts", self.rule_fact)
        self.each("rule_tokens", self.rule_token)
        self.each("permissions", self.permission)

    def each(self, name: str, take: Callable[[dict[str, Any]], None]) -> None:
        """Take the rows of a member one by one; a row that does not fit is damage."""
        for number, row in enumerate(self.archive.rows(name), start=1):
            with self.sound(name, number):
                take(row)

    def sound(self, name: str, number: int) -> _Sound:
        return _Sound(self.archive, name, number)

    # nodes

    def nodes(self) -> None:
        waiting: dict[str, list[tuple[Node, dict[str, Any]]]] = {}
        ids: set[str] = set()
        for number, row in enumerate(self.archive.rows("nodes"), start=1):
            with self.sound("nodes", number):
                node = _node(row)
                waiting.setdefault(row["home"] or row["parent"], []).append((node, row))
                ids.add(node.id)
        ready = [parent for parent in waiting if parent not in ids]
        while ready:
            parent = ready.pop()
            for node, row in sorted(waiting.pop(parent, ()), key=lambda pair: pair[1]["position"]):
                with self.sound("nodes", 0):
                    self.node(node, parent, row["position"])
                ready.append(node.id)
        if waiting:
            raise self.archive.damaged("nodes", 0, f"{next(iter(waiting))!r} lies below itself")

    def node(self, node: Node, parent: str, position: int) -> None:
        tree = self.tree
        is_memory = node.kind == MEMORY_KIND and node.content is not None
        there = tree.find(node.id)
        same = known_text(tree, node.content or "") if is_memory else None
        if same is None and there is not None and _said(node) in (_said(there), _said(_exported(there))):
            same = there  # an archive of this very tree has it without what looks like a secret
            known = sayings(_exported(there))
            told = [saying for saying in sayings(node) if saying not in known]
            node = replace(node, provenance={**node.provenance, "said": told})
        if same is not None:
            merge_sayings(tree, same, node)
            self.done.count("nodes", new=False)
            return
        if there is not None:
            other = f"{node.id}~{digest_of(node)[:8]}"
            if other in tree:
                self.done.count("nodes", new=False)
                return
            self.done.conflicts.append(Conflict("node", node.id, f"both: the one of the archive is {other}"))
            node = replace(node, id=other)
        place = next((i for i in (parent, *above(parent)) if i in tree), ROOT)
        tree.add(node, parent=place)
        if is_memory:
            note_text(tree, node)
        if place != parent or position < APPENDED:
            now = self.layer.place(node.id)
            assert now is not None
            home = parent if place != parent else None
            self.layer.put(
                node.id, self.layer.next_seq(), place, position if position < APPENDED else now[1], home
            )
        self.done.count("nodes", new=True)

    def override(self, row: dict[str, Any]) -> None:
        if self.tree.index is self.tree.memory:
            self.done.conflicts.append(
                Conflict(
                    "override", str(row["id"]), "nothing: this tree was made by hand and has no such node"
                )
            )
            return
        names = ("parent", "position", "home", "hidden", "title", "description", "provenance", "basis")
        said = {name: _scalar(row[name]) for name in names}
        now = self.store.row(f"SELECT {', '.join(names)} FROM override WHERE id = ?", (_text(row["id"]),))
        if now is None:
            place = said["home"] or said["parent"]
            if place is not None and place not in self.tree:
                said["home"] = place
                said["parent"] = next((i for i in above(str(place)) if i in self.tree), ROOT)
            self.put_override(row["id"], said)
            self.done.count("overrides", new=True)
            return
        kept = dict(zip(names, now, strict=True))
        missing = {n: v for n, v in said.items() if v is not None and kept[n] is None and n in names[4:]}
        differing = [
            n for n in ("title", "description") if said[n] is not None and kept[n] not in (None, said[n])
        ]
        if differing:
            what = f"the {' and '.join(differing)} that the tree has"
            self.done.conflicts.append(Conflict("override", row["id"], what))
        if missing:
            self.put_override(row["id"], missing)
        self.done.count("overrides", new=False)

    def put_override(self, node_id: str, fields: Mapping[str, Any]) -> None:
        self.tree._overlay.put_override(self.layer.next_seq(), node_id, **fields)

    def link(self, row: dict[str, Any]) -> None:
        values = tuple(_text(row[name]) for name in ("source", "kind", "target"))
        new = self.store.execute("INSERT OR IGNORE INTO link(source, kind, target) VALUES (?, ?, ?)", values)
        self.done.count("links", bool(new))

    def fact(self, row: dict[str, Any]) -> None:
        key = _text(row["key"])
        if key in LOCAL_FACTS or key.startswith((DERIVED_FACTS, PERMISSION_FACTS, SHARED_FACTS)):
            return
        new = self.layer.fact(key) is None
        if new:
            self.layer.set_fact(key, row["value"])
        self.done.count("facts", new)

    def permission(self, row: dict[str, Any]) -> None:
        if not self.permissions:
            self.done.permissions_left_out += 1
            return
        key = _text(row["key"])
        if not key.startswith(PERMISSION_FACTS):
            raise ValueError(f"{key!r} is no permission")
        new = self.layer.fact(key) is None
        if new:
            self.layer.set_fact(key, row["value"])
        self.done.count("permissions", new)

    # runs

    def runs(self) -> None:
        journals = _grouped(self.archive.rows("journal"), "run")
        following = next(journals, None)
        for number, row in enumerate(self.archive.rows("runs"), start=1):
            with self.sound("runs", number):
                records = []
                if following is not None and following[0] == row["id"]:
                    records = [self.record(each) for each in following[1]]
                    following = next(journals, None)
                if not records:
                    raise ValueError(f"run {row['id']!r} has no journal")
                self.run(_text(row["id"]), _text(row["machine"]), row["ended"], records)
        if following is not None:
            raise self.archive.damaged("journal", 0, f"run {following[0]!r} is not among the runs")

    def record(self, row: dict[str, Any]) -> tuple[Any, ...]:
        body = _placed(row["body"], self.tree) if row["seq"] == 0 else row["body"]
        said = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        used = None if row["used"] is None else json.dumps(row["used"], separators=(",", ":"))
        return (int(row["seq"]), _text(row["kind"]), float(row["at"]), row["effect"], said, used)

    def run(self, run_id: str, machine: str, ended: Any, records: list[tuple[Any, ...]]) -> None:
        found = self.store.row("SELECT number, owner, expires_at FROM run WHERE id = ?", (run_id,))
        if found is None:
            sql = "INSERT INTO run(id, machine, owner, token, expires_at, ended) VALUES (?, ?, NULL, 1, 0, ?)"
            number = self.store.rows(f"{sql} RETURNING number", (run_id, machine, _scalar(ended)))[0][0]
            self.append(number, records)
            self.moved_runs[run_id] = number
            self.done.count("runs", new=True)
            return
        number, owner, _ = found
        sql = "SELECT seq, kind, at, effect, body, used FROM journal WHERE run = ? ORDER BY seq"
        here = [_comparable(row) for row in self.store.rows(sql, (number,))]
        there = [_comparable(row) for row in records]
        if there in (here[: len(there)], without_secrets(here[: len(there)])[0]):
            self.done.count("runs", new=False)
        elif there[: len(here)] == here and (owner is None or is_dead(owner)):
            self.append(number, records[len(here) :])
            delivered = [(number, record[2]) for record in records[len(here) :] if record[1] == "signal"]
            self.store.execute_many("DELETE FROM mail WHERE run = ? AND at = ?", delivered)
            self.store.execute(
                "UPDATE run SET ended = ?, owner = NULL, token = token + 1 WHERE number = ?",
                (_scalar(ended), number),
            )
            self.moved_runs[run_id] = number
            self.done.count("runs", new=True)
        else:
            self.done.conflicts.append(
                Conflict("run", run_id, "the one that the tree has, which went another way")
            )
            self.done.count("runs", new=False)

    def append(self, number: int, records: list[tuple[Any, ...]]) -> None:
        self.store.execute_many(
            "INSERT INTO journal(run, seq, kind, at, effect, body, used) VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, *record) for record in records),
        )

    def letter(self, row: dict[str, Any]) -> None:
        """Take a signal that waits for a run, unless the run was here already: then it may have been delivered."""
        number = self.moved_runs.get(_text(row["run"]))
        if number is not None:
            self.store.execute(
                "INSERT INTO mail(run, name, value, at) VALUES (?, ?, ?, ?)",
                (number, _text(row["name"]), _text(row["value"]), float(row["at"])),
            )
            self.store.execute("UPDATE run SET cancel = cancel | 2 WHERE number = ?", (number,))
        self.done.count("mail", new=number is not None)

    def call(self, row: dict[str, Any]) -> None:
        texts = (_text(row[name]) for name in ("hash", "tool", "version", "arguments", "key", "run_id"))
        new = self.store.execute(
            "INSERT OR IGNORE INTO call(hash, tool, version, arguments, key, run_id, owner, expires_at, at, until,"
            " result) VALUES (?, ?, ?, ?, ?, ?, NULL, 0, ?, ?, ?)",
            (
                *texts,
                float(row["at"]),
                _scalar(row["until"]),
                None if row["result"] is None else json.dumps(row["result"]),
            ),
        )
        self.done.count("calls", bool(new))

    # boards

    def boards(self) -> None:
        numbers: dict[str, int] = {}
        for place, row in enumerate(self.archive.rows("boards"), start=1):
            with self.sound("boards", place):
                name = _text(row["name"])
                found = self.store.row("SELECT number FROM board WHERE name = ?", (name,))
                if found is None:
                    made = self.store.rows(
                        "INSERT INTO board(name, parent, made_at) VALUES (?, ?, ?) RETURNING number",
                        (name, numbers.get(row["parent"]), float(row["made_at"])),
                    )
                    found = made[0]
                numbers[name] = int(found[0])
        for place, row in enumerate(self.archive.rows("items"), start=1):
            with self.sound("items", place):
                self.item(numbers[row["board"]], row)

    def item(self, board: int, row: dict[str, Any]) -> None:
        names = _ITEM
        json.loads(_text(row["data"]))
        values = {name: _scalar(row[name]) for name in names}
        there = self.store.row(
            "SELECT number, version, data, at, removed FROM item WHERE board = ? AND id = ?",
            (board, _text(row["id"])),
        )
        following = "(SELECT coalesce(max(changed), 0) + 1 FROM item WHERE board = ?)"
        if there is None:
            self.store.execute(
                f"INSERT INTO item(board, id, removed, {', '.join(names)}, changed)"
                f" VALUES (?, ?, 0, {', '.join('?' * len(names))}, {following})",
                (board, row["id"], *values.values(), board),
            )
            self.done.count("items", new=True)
            return
        number, version, data, at, removed = there
        if at == values["at"] and int(values["version"]) > version and not removed:
            sets = ", ".join(f"{name} = ?" for name in names)
            self.store.execute(
                f"UPDATE item SET {sets}, changed = {following} WHERE number = ?",
                (*values.values(), board, number),
            )
        elif (
            values["data"] not in (data, redacted(data)[0])
            and not removed
            and (at != values["at"] or version == values["version"])
        ):
            self.done.conflicts.append(Conflict("item", row["id"], "the one that the tree has"))
        self.done.count("items", new=False)

    def image(self, row: dict[str, Any]) -> None:
        names = ("size", "width", "height", "look", "thumbnail", "thumbnail_width", "thumbnail_height")
        name = _text(row["name"])
        content = self.archive.image(name)
        path = self.store.path
        if content is None or path is None:
            return
        if blake2b(content, digest_size=16).hexdigest() != name.partition(".")[0]:
            raise ValueError(f"the image {name} is not what its name says")
        folder = path.with_name(path.name + ".images")
        _put(folder, name, content)
        small = self.archive.image(row["thumbnail"])
        if small is not None:
            _put(folder, row["thumbnail"], small)
        values = {key: _scalar(row[key]) for key in names}
        if small is None:
            values |= {"thumbnail": None, "thumbnail_width": None, "thumbnail_height": None}
        new = self.store.execute(
            f"INSERT OR IGNORE INTO image(name, {', '.join(names)}) VALUES (?{', ?' * len(names)})",
            (name, *values.values()),
        )
        self.done.count("images", bool(new))

    # rules

    def rule_fact(self, row: dict[str, Any]) -> None:
        names = ("memory", "id", "attribute", "value", "provenance")
        new = self.store.execute(
            f"INSERT OR IGNORE INTO fact({', '.join(names)}) VALUES (?, ?, ?, ?, ?)",
            tuple(_scalar(row[name]) for name in names),
        )
        self.done.count("rule_facts", bool(new))

    def rule_token(self, row: dict[str, Any]) -> None:
        names = ("memory", "production", "conditions", "token", "state")
        new = self.store.execute(
            f"INSERT OR IGNORE INTO rule_token({', '.join(names)}) VALUES (?, ?, ?, ?, ?)",
            tuple(_text(row[name]) for name in names),
        )
        self.done.count("rule_tokens", bool(new))


@dataclass(frozen=True, slots=True)
class _Sound:
    """Turns what a row that does not fit raises into the error of a damaged archive."""

    archive: Archive
    name: str
    number: int

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        misfit = isinstance(error, KeyError | TypeError | ValueError | AttributeError | UserError)
        if misfit and not isinstance(error, BrokenStore):
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise self.archive.damaged(self.name, self.number, missing) from error


def _node(row: Mapping[str, Any]) -> Node:
    source = None
    if row["source_type"] is not None:
        parts = tuple((int(first), int(last)) for first, last in row["parts"] or ())
        source = Source(
            type=_text(row["source_type"]),
            path=_text(row["source_path"]),
            start_line=row["start_line"],
            end_line=row["end_line"],
            parts=parts,
        )
    if not isinstance(row["position"], int) or not isinstance(row["home"] or row["parent"], str):
        raise ValueError("it has no place")
    content = row["content"]
    return Node(
        _text(row["id"]),
        _text(row["title"]),
        _text(row["description"]),
        None if content is None else _text(content),
        _text(row["kind"]),
        source,
        dict(row["provenance"] or {}),
        dict(row["attributes"] or {}),
    )


def _exported(node: Node) -> Node:
    """Return a node as an archive has it."""
    return replace(
        node,
        title=redacted(node.title)[0],
        description=redacted(node.description)[0],
        content=None if node.content is None else redacted(node.content)[0],
        attributes=without_secrets(node.attributes)[0],
        provenance=without_secrets(node.provenance)[0],
    )


def _said(node: Node) -> tuple[Any, ...]:
    return (node.kind, node.title, node.description, node.content, node.source, dict(node.attributes))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is expected, not {value!r}")
    return value


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, str | int | float | bytes):
        raise ValueError(f"a plain value is expected, not {type(value).__name__}")
    return value


def _placed(body: Any, tree: Tree) -> Any:
    """Return the first record of a run with the paths of this tree."""
    given = body.get("given") if isinstance(body, dict) else None
    if not isinstance(given, dict):
        return body
    given = dict(given)
    if given.get("tree") == HERE:
        given["tree"] = None if tree.path is None else str(tree.path.absolute())
    board = given.get("board")
    if isinstance(board, dict) and board.get("path") == HERE:
        memory = tree.memory.path
        given["board"] = {**board, "path": None if memory is None else str(memory.resolve())}
    return {**body, "given": given}


def _comparable(row: tuple[Any, ...]) -> list[Any]:
    seq, kind, at, effect, body, used = row
    return [seq, kind, at, effect, body and json.loads(body), used and json.loads(used)]


def _grouped(rows: Iterable[dict[str, Any]], key: str) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    group: list[dict[str, Any]] = []
    for row in rows:
        if group and group[0].get(key) != row.get(key):
            yield group[0].get(key), group
            group = []
        group.append(row)
    if group:
        yield group[0].get(key), group


def _put(folder: Path, name: str, content: bytes) -> None:
    """Write a file whole; one that is there is the same, since its name is its hash."""
    if (folder / name).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    number, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    with os.fdopen(number, "wb") as out:
        out.write(content)
    Path(part).replace(folder / name)
