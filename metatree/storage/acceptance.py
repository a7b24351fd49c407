"""Looking into stores that somebody else made, accepting them, taking that back; `metatree.storage.trust` says why."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Any, Final

from metatree._util.links import former_places
from metatree._util.named_file import is_here
from metatree._util.private import keep_private, private_folder
from metatree._util.secret_text import shapes_masked
from metatree.errors import MetatreeError, UserError
from metatree.storage._accepted_rows import check_rows, is_json
from metatree.storage.schema import DEFINITIONS, FILES
from metatree.storage.store import APPLICATION_ID, Store, reading_only, writable
from metatree.storage.store_files import check_files, is_exempt, is_of_another
from metatree.storage.trust import (
    FACTS,
    IMPORTED_NODE,
    IMPORTED_RUN,
    LONGEST_VALUE,
    NAMED_FILE,
    NAMED_IN,
    OFFERED,
    acceptance,
    accepted_state,
    bounded,
    check,
    content_digest,
    facts_in,
    is_excess,
    is_strange,
    mark_key,
    sign,
    signed_facts,
)
from metatree.storage.user_key import config_folder

_NAMES: Final = 100
"""How many names of each kind a survey lists."""
_MOST: Final = 1_000_000
"""How many of each it compares to choose those; they take 150 bytes each, ten times what they take in a file."""
_CHARS: Final = 200
_SECONDS: Final = 25.0
_MOST_BYTES: Final = 8_000_000_000
"""Of a larger store not even a digest is made within that time."""
_PERMISSION: Final = "permission:"
_FLAG: Final = "flag:"
_WISH: Final = "wish"
_OF_THE_MOMENT: Final = ("board_waiter", "service_server", "service_session", "service_login")
"""Tables of who waits, listens or is logged in just now: none of them is, where a store was accepted."""
_PARTS: Final = {"journal": "run", "mail": "run", "item": "board"}
"""Tables with rows for a number of another one."""
_INDEXES: Final = ("text_", "commit_")
"""How the tables begin that say which words are where."""
_KEPT_FACTS: Final = (FACTS, IMPORTED_NODE, IMPORTED_RUN, NAMED_FILE, _PERMISSION, _FLAG, "files:")
"""How the keys of facts begin that count whoever wrote them: marks, what is shown, and how lists of files are cut. Any
other says what was done here, such as which nodes are left out, or where a text is remembered already."""
_KEPT_ALONE: Final = ("sources", "made_at", "generation")
_OF_USERS: Final = {
    "service_key": "name",
    "service_group": "member",
    "service_nonce": "name",
    "topic": "owner",
}
"""Tables with rows for a user, who must be there: else they would be those of the next one of that name."""
_INSIDE: Final = "engine-inside"
"""The user whom a server makes an engine of its own."""
_NOT_TAKEN: Final = (
    # They answer what is asked in the same words.
    *("chat", "lookup", "lookup_wish", "service_index"),
    # It goes into the memory of a tree, as said by this user if it names that one.
    "recommendation",
    # Who waits.
    *("turn", "service_engine"),
    # Also of trees that are not there yet.
    *("service_tree", "service_tree_right"),
    # What is published: engines take it for this user's.
    *("tree_state", "tree_version", "tree_file", "tree_memory"),
)
"""Tables of a service that are not taken over."""
_BEGINS: Final = "schedule"
"""The table of what begins agents by itself: nothing does in the name of somebody else."""
_OF_SOURCES: Final = (
    *("content", "link", "gone", "override", "file", "omission", "rename"),
    *("history_commit", "history_file", "history_name", "history_touch"),
)
"""Tables of what was read from sources, besides the nodes."""
_TABLE_LABELS: Final = {
    "override": "nodes changed or hidden",
    "link": "links between nodes",
    "call": "results of tools",
    "mail": "signals for runs",
    "item": "texts on blackboards",
    "image": "images on blackboards",
    "fact": "facts of rules",
    "rule_token": "tokens of rules that were dealt with",
    _BEGINS: "schedules of agents, which are not taken over",
    "topic": "topics, but for those of users who are not there",
    "query": "questions to the service, of which open ones are not searched",
    "lookup": "lookups, which are not taken over",
    "recommendation": "recommendations, which are not taken over",
    "service_key": "API keys",
    "service_group": "memberships in groups",
    "service_tree": "names of trees, which are not taken over",
    "service_tree_right": "rights to ask trees, which are not taken over",
    "tree_version": "versions of a published tree, which are not taken over",
    "tree_memory": "texts of the memory that engines share, which are not taken over",
}
"""What else is in tables: what the rows of each are called."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store would be trusted with."""

    file: Path
    trusted: bool
    """Whether this user made or accepted it."""
    problem: str = ""
    """Why it cannot be accepted, whatever is in it."""
    sources: list[dict[str, Any]] = field(default_factory=list)
    """The records of the sources that it names."""
    offered: list[dict[str, Any]] = field(default_factory=list)
    """Those of the sources that the index named in whose place this one was built; they are not used yet."""
    permissions: list[str] = field(default_factory=list)
    """The tools that it lets run without asking."""
    memories: int = 0
    authors: list[str] = field(default_factory=list)
    """In whose names the memories, and all else that has a name on it, are."""
    runs: int = 0
    """How many runs it has whose journals could be resumed."""
    users: list[tuple[str, str]] = field(default_factory=list)
    """Names and roles of a query service."""
    held: dict[str, int] = field(default_factory=dict)
    """How many there are of anything else, by what it is called."""
    unnamed: dict[str, int] = field(default_factory=dict)
    """How many `permissions`, `authors` and `users` there are besides those listed."""
    signed: dict[str, str] = field(default_factory=dict)
    """What a mark would be over."""
    digest: str = field(default="", compare=False)
    """Of all that was in it and its log, also of what is only counted; empty for one that is trusted."""


def stores_in(place: Path) -> list[Path]:
    """Return the stores of a folder, or the one file that is named, by their names.

    A file of a folder that is not even opened, such as a link, is among them: `survey` says why.

    Raises:
        UserError: there is none, or the one file is not opened.
    """
    if not place.is_dir():
        stores = [place] if place.is_file() and _is_store(place) else []
    else:
        stores = [file for file in sorted(place.glob("*.db")) if file.is_file() and _may_be_store(file)]
    if not stores:
        raise UserError(f"there is no tree and no other store of metatree in {str(place)!r}")
    return stores


def survey(file: Path) -> Survey:
    """Look into a store, whoever made it; nothing of it runs, and reading is bounded.

    Raises:
        UserError: one of its files is a link, or no regular file.
    """
    check_files(file)
    with closing(_reading(file)) as connection:
        digest, trusted = "", False
        with suppress(MetatreeError, sqlite3.Error):
            # One that was accepted where it could not be written has all in it that is taken out of others.
            trusted = check(connection, file) or not writable(file)
        try:
            with bounded(connection):
                problem = _problem(connection)
            if not trusted and file.stat().st_nlink > 1:
                problem = "it is the same file as one elsewhere (a hard link): copy it, and delete this name"
            if not trusted and not problem:
                if file.stat().st_size > _MOST_BYTES:
                    problem = "it is too large to look into"
                else:
                    digest = content_digest(file)
            if problem:
                return Survey(file, trusted, problem)
            connection.set_progress_handler(_deadline(), 100_000)
            return replace(_survey(connection, file, trusted), digest=digest)
        except sqlite3.Error as exc:
            damaged = f"it is damaged ({shapes_masked(str(exc))})"
            return Survey(
                file, trusted, "it is too large to look into" if is_excess(exc, connection) else damaged
            )


def accept(file: Path, seen: Survey | None = None, *, own: bool = False) -> None:
    """Accept a store that somebody else made, with the sources that it names now.

    Its runs are as those of an import: no yes in them counts, and they have no board in another file.

    Args:
        file: the store.
        seen: what was shown of it; it is accepted only while all that is in it is the same. None looks now.
        own: whether its runs were begun by this user nevertheless, such as those of a backup.

    Raises:
        UserError: it cannot be read, or there is no place to keep that it was accepted.
    """
    if config_folder() is None and not is_exempt(file):
        raise UserError(
            "there is no home to keep it in: set METATREE_CONFIG_DIR to a folder, or METATREE_TRUST"
        )
    seen = survey(file) if seen is None else seen
    if seen.problem:
        raise UserError(f"{str(file)!r} cannot be accepted: {seen.problem}; delete it, or ask who made it")
    check_files(file)
    if writable(file) and is_of_another(file.stat()) and not is_exempt(file):
        raise UserError(
            f"{str(file)!r} belongs to another user, who may change it after it was accepted: copy it to a folder of"
            " yours, and accept that"
        )
    # Before it is opened, which may bring an older one up to date.
    if not seen.trusted and content_digest(file) != seen.digest:
        raise UserError(f"{str(file)!r} was changed meanwhile: look at it again")
    with Store.open(file, create=False, trust=True) as store:
        content = content_digest(file) if store.read_only else ""
        if replace(survey(file), trusted=seen.trusted) != seen:
            raise UserError(f"{str(file)!r} was changed meanwhile: look at it again")
        if not store.read_only:
            with store.transaction():
                sign(store, seen=seen.signed)
                if not seen.trusted:
                    check_rows(store)
                    _drop_what_was_not_shown(store, own)
                    if not own:
                        _keep_sources_alone(store, seen.sources)
                        _hold_places(store, seen.sources, file.parent)
                        sign(store)
            store.taken_over = True
            store.rows("PRAGMA wal_checkpoint")  # the seal belongs into the file
            # git and archives give rights that let others of this machine read what is remembered from now on.
            for each in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
                keep_private(each)
            if file.parent.name == ".metatree":
                with suppress(OSError):
                    file.parent.chmod(0o700)
            return
        facts = signed_facts(store)
    if facts != seen.signed:
        raise UserError(f"{str(file)!r} was changed meanwhile: look at it again")
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:  # its owner says by `-shm` which part of it counts
        raise UserError(
            f"{str(file)!r} has a log and cannot be written here: have its owner stop what uses it"
        )
    mark = acceptance(file)
    assert mark is not None
    try:
        private_folder(mark.parent)
        mark.touch(mode=0o600)
        mark.write_text(f"{accepted_state(file, facts)} {content}\n{json.dumps(os.path.realpath(file))}\n")
    except OSError as exc:
        raise UserError(
            f"cannot write in {str(mark.parent)!r}: {exc.strerror}; set METATREE_CONFIG_DIR to a folder of yours"
        ) from exc


def _drop_what_was_not_shown(store: Store, own: bool) -> None:
    """Drop what others are said to have offered, where somebody listens, and what a person permitted in runs."""
    store.execute("DELETE FROM meta WHERE key = ?", (OFFERED,))
    for table in _OF_THE_MOMENT:
        if store.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)):
            store.execute(f"DELETE FROM {table}")
    if not own:
        store.execute("UPDATE override SET parent = NULL, position = NULL, hidden = 0 WHERE id = '.'")
        _drop_what_acts_for_others(store)
        store.execute(f"DELETE FROM {_BEGINS}")
        # Else the next run of this user, or board, would have the number of one that is not there.
        for table, above in _PARTS.items():
            store.execute(
                f"DELETE FROM {table} WHERE {above} NOT IN (SELECT number FROM {above} NOT INDEXED)"
            )
        store.execute(  # they would answer what a run of this user will ask
            "DELETE FROM item WHERE (section = 'questions' OR id GLOB '*:q[0-9]*') AND NOT EXISTS"
            " (SELECT 1 FROM run WHERE substr(item.id, 1, length(run.id) + 2) = run.id || ':q' AND item.run = run.id"
            " AND substr(item.id, length(run.id) + 3) NOT GLOB '*[^0-9]*')"
        )
        store.execute("DELETE FROM meta WHERE substr(key, 1, ?) = ?", (len(IMPORTED_RUN), IMPORTED_RUN))
        store.execute(
            "INSERT OR REPLACE INTO meta(key, value) SELECT ? || id, 'true' FROM run NOT INDEXED",
            (IMPORTED_RUN,),
        )


def _drop_what_acts_for_others(store: Store) -> None:
    """Drop facts that say what was done here, what is there for users who are not, and answers of persons."""
    for key, value in store.rows("SELECT key, value FROM meta"):
        if not is_json(value, object):
            store.execute("DELETE FROM meta WHERE key = ?", (key,))
    begins = " OR ".join("substr(key, 1, ?) = ?" for _ in _KEPT_FACTS)
    store.execute(
        f"DELETE FROM meta WHERE key NOT IN ({', '.join('?' * len(_KEPT_ALONE))}) AND NOT ({begins})",
        [*_KEPT_ALONE, *(part for key in _KEPT_FACTS for part in (len(key), key))],
    )
    if not store.rows("SELECT 1 FROM sqlite_master WHERE name = 'service_user'"):
        return
    store.execute("DELETE FROM service_user WHERE name = ?", (_INSIDE,))
    for table, column in _OF_USERS.items():
        store.execute(
            f"DELETE FROM {table} WHERE {column} NOT IN (SELECT name FROM service_user NOT INDEXED)"
        )
    store.execute("DELETE FROM topic WHERE trees <= 0")  # of no tree: nobody would be asked for a right
    for table in ("query", "progress"):
        store.execute(f"DELETE FROM {table} WHERE topic NOT IN (SELECT id FROM topic NOT INDEXED)")
    tables = {name for (name,) in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table in tables.intersection(_NOT_TAKEN):  # an older service lacks some
        store.execute(f"DELETE FROM {table}")
    if "service_nonce_end" in tables:  # one in the future would have every proof refused
        now = time.time()
        store.execute("UPDATE service_nonce_end SET ends_at = ? WHERE NOT ends_at <= ?", (now, now))
    store.execute("UPDATE topic SET ready_at = NULL")
    store.execute(  # nothing is searched with the tools that this user permitted
        "UPDATE query SET asked = NULL,"
        " status = CASE WHEN status IN ('Open', 'Pending', 'Waiting') THEN 'Failed' ELSE status END"
    )


def _keep_sources_alone(store: Store, sources: list[dict[str, Any]]) -> None:
    """Drop what an index says of its sources, which are read anew; and what files a tree made by hand may read.

    What came with it could name what a server does not list, call a tool one that changes nothing, or count a file in
    that was left out. A tree that was made by hand keeps its nodes, which nothing could make again.
    """
    store.execute("DELETE FROM meta WHERE substr(key, 1, ?) = ?", (len(NAMED_FILE), NAMED_FILE))
    store.execute("INSERT INTO meta(key, value) VALUES (?, 'true')", (NAMED_FILE,))
    # Of no other ones, which would tell of nodes that come later.
    store.execute("DELETE FROM meta WHERE substr(key, 1, ?) = ?", (len(IMPORTED_NODE), IMPORTED_NODE))
    store.execute(
        "INSERT OR REPLACE INTO meta(key, value) SELECT ? || id, 'true' FROM node NOT INDEXED",
        (IMPORTED_NODE,),
    )
    store.execute(
        "INSERT OR REPLACE INTO meta(key, value) SELECT ? || key, 'true' FROM meta WHERE substr(key, 1, ?) = ?",
        (IMPORTED_NODE, len(_FLAG), _FLAG),
    )
    store.execute("DELETE FROM content WHERE id NOT IN (SELECT id FROM node NOT INDEXED)")
    store.execute("DELETE FROM file")  # what a tree was built from may be read
    for (table,) in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
        if table.startswith(_INDEXES):  # and is made again
            store.execute(f"DROP TABLE {table}")
    if not any(record.get("type") for record in sources):
        return
    for table in _OF_SOURCES:
        store.execute(f"DELETE FROM {table}")
    store.execute("DELETE FROM node WHERE id <> '.'")
    store.execute(  # with a digest that is none, so that the build writes it again
        "UPDATE node SET seq = 1, parent = NULL, position = 0, kind = 'folder', title = '', description = '',"
        " source_type = NULL, source_path = NULL, start_line = NULL, end_line = NULL, parts = NULL, provenance = NULL,"
        " attributes = NULL, digest = '', kept = 0, home = NULL"
    )
    store.execute("DELETE FROM meta WHERE key <> 'sources' AND substr(key, 1, ?) <> ?", (len(FACTS), FACTS))
    store.execute("INSERT INTO meta(key, value) VALUES ('generation', ?)", (json.dumps(uuid.uuid4().hex),))
    for record in sources:
        mount = record.get("mount")
        store.execute(
            "INSERT OR REPLACE INTO meta(key, value) VALUES (?, 'true')",
            (f"building:{mount}" if mount else "building",),
        )


def _hold_places(store: Store, sources: list[dict[str, Any]], folder: Path) -> None:
    """Keep the places of sources outside of the folder as they were shown: relative ones would move with it."""
    home = folder.resolve().parent if folder.name == ".metatree" else folder.resolve()
    records = []
    for record in sources:
        options = dict(record["options"])
        for kept, name in ((record := dict(record), "place"), (options, NAMED_IN)):
            if isinstance(kept.get(name), str):
                place = Path(os.path.normpath(folder.resolve() / kept[name]))
                if not place.is_relative_to(home):
                    kept[name] = str(place)
        records.append({**record, "options": options})
    if records != sources:
        store.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps(records),))


def drop_offer(file: Path) -> None:
    """Forget what sources an index of somebody else named: they are used now, or will not be."""
    with Store.open(file, create=False) as store:
        store.execute("DELETE FROM meta WHERE key = ?", (OFFERED,))


def revoke(file: Path) -> bool:
    """Take this user's marks off a store, and return whether there were any."""
    check_files(file)
    with Store.open(file, create=False, trust=True) as store:
        removed = 0 if store.read_only else store.execute("DELETE FROM meta WHERE key = ?", (mark_key(),))
    return drop_acceptance(file) or bool(removed)


def drop_acceptance(file: Path) -> bool:
    """Forget that a store was accepted at a place where it cannot be written, whatever lies there now."""
    mark = acceptance(file)
    if mark is None or not mark.exists():
        return False
    mark.unlink()
    return True


def drop_acceptances(place: Path) -> list[Path]:
    """Forget the stores in a folder, or the one at a place, that were accepted where they could not be written.

    By what was recorded then, whatever lies there now; return them.
    """
    folder, places = config_folder(), former_places(place)
    dropped = []
    for mark in () if folder is None else sorted((folder / "accepted").glob("*")):
        with suppress(OSError, ValueError):
            file = json.loads(mark.read_text().partition("\n")[2])
            if isinstance(file, str) and not places.isdisjoint({file, os.path.dirname(file)}):  # noqa: PTH120
                mark.unlink()
                dropped.append(Path(file))
    return dropped


def _may_be_store(file: Path) -> bool:
    try:
        return _is_store(file)
    except UserError:
        return True


def _is_store(file: Path) -> bool:
    with suppress(sqlite3.Error), closing(_reading(file)) as connection:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    return False


def _reading(file: Path) -> sqlite3.Connection:
    check_files(file)
    uri = f"{file.absolute().as_uri()}?mode=ro" if writable(file) else reading_only(file)
    connection = sqlite3.connect(uri, uri=True, timeout=5.0)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    return connection


def _problem(connection: sqlite3.Connection) -> str:
    if is_strange(connection):
        return "it defines what no store of metatree does, such as triggers, views, or tables by other names"
    if facts_in(connection) is None:
        return "its table of facts is none of metatree's"
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    # An older one gets tables of this version when it is opened. Those of a service are looked at when that begins.
    if FILES.first <= version <= FILES.version and (
        table := FILES.differing(version, connection.execute(DEFINITIONS).fetchall())
    ):
        return f"it defines {table!r} otherwise than metatree does"
    return ""


def _survey(connection: sqlite3.Connection, file: Path, trusted: bool) -> Survey:
    # An index that lies, or rows out of order, would hide from this what is found by another way later.
    if not trusted and connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        return Survey(file, trusted, "it is damaged")
    facts: dict[str, str] = dict(
        connection.execute(
            "SELECT key, value FROM meta WHERE +key IN (?, 'sources', ?)", (f"{FACTS}id", OFFERED)
        )
    )
    sources, offered = (_records(facts.get(key)) for key in ("sources", OFFERED))
    if sources is None or (not trusted and any(_is_nearby(record, file.parent) for record in sources)):
        return Survey(file, trusted, "its list of sources is none of metatree's")
    rows = connection.execute(
        "SELECT value FROM meta WHERE substr(key, 1, ?) = ?", (len(_PERMISSION), _PERMISSION)
    )
    permissions = [tool_name(_object(value)) for (value,) in islice(rows, _MOST + 1)]
    memories = 0
    authors: set[str] = set()
    wishes = 0
    for kind, text, more in _rows(connection, "node", "kind, provenance, attributes"):
        record = _object(text)
        names = names_in(record) | names_in(_object(more))
        wishes += kind == _WISH
        if names or (kind == "memory" and record.get("by") == "remember"):
            memories += 1
            authors |= names or {"nobody"}
            if len(authors) > _MOST:
                break
    flags = 0
    for (text,) in connection.execute(
        "SELECT value FROM meta WHERE substr(key, 1, ?) = ?", (len(_FLAG), _FLAG)
    ):
        flags += 1
        authors |= names_in(_object(text))
    for (text,) in _rows(connection, "override", "provenance"):
        authors |= names_in(_object(text))
    for (name,) in _rows(connection, "item", "DISTINCT agent"):
        authors |= {_short(name)} if name else set()
    known = islice(_rows(connection, "service_user", "name, role"), _MOST + 1)
    users = {(_short(role), _short(name)) for name, role in known}
    if max(len(permissions), len(authors), len(users)) > _MOST:
        return Survey(file, trusted, "it is too large to look into")
    counts = {
        "standing wishes, which go to agents with each answer": wishes,
        "flags against what is found": flags,
        "other nodes": _count(connection, "node") - memories,
    }
    counts |= {word: _count(connection, table) for table, word in _TABLE_LABELS.items()}
    lists: dict[str, Collection[Any]] = {"permissions": permissions, "authors": authors, "users": users}
    return Survey(
        file,
        trusted,
        sources=sources,
        offered=offered or [],
        permissions=nsmallest(_NAMES, permissions),
        memories=memories,
        authors=nsmallest(_NAMES, authors),
        runs=_count(connection, "run"),
        users=[(name, role) for role, name in nsmallest(_NAMES, users)],
        held={word: number for word, number in counts.items() if number},
        unnamed={name: len(all_) - _NAMES for name, all_ in lists.items() if len(all_) > _NAMES},
        signed={key: value for key, value in facts.items() if key != OFFERED},
    )


def names_in(record: dict[str, Any]) -> set[str]:
    """Return in whose names a node speaks, by its provenance or its attributes, or who flagged one.

    Whatever its kind is, it is shown as said by them: memories by `who`, turns by `speaker`, wishes by either.
    """
    said = record.get("said")
    mentions = [record, *(said if isinstance(said, list) else ())]
    return {
        _short(each[name])
        for each in mentions
        if isinstance(each, dict)
        for name in ("who", "speaker")
        if each.get(name)
    }


def _short(text: object) -> str:
    name = str(text)
    return name if len(name) <= _CHARS else f"{name[: _CHARS - 1]}…"


def _records(text: str | None) -> list[dict[str, Any]] | None:
    """Return the records of sources as they are kept; None for anything else, which cannot be shown for what it is."""
    try:
        records = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return None
    if records is None:
        return []
    if not isinstance(records, list) or not all(map(_is_record, records)):
        return None
    mounts = [record.get("mount", "") for record in records]
    return records if len(set(mounts)) == len(mounts) and (len(mounts) == 1 or all(mounts)) else None


def _is_record(record: Any) -> bool:
    if not isinstance(record, dict) or ("place" in record) == ("location" in record):
        return False
    if "location" in record and not record.get("type"):  # whoever reads it next would find a type for it
        return False
    texts = [value for key, value in record.items() if key != "options"]
    known = {"type"} <= record.keys() <= {"type", "place", "location", "options", "mount"}
    options = record.get("options")
    if not isinstance(options, dict) or not all(isinstance(each, str) for each in texts):
        return False
    place = record.get("place", "")
    if not known:
        return False
    if (
        record["type"] not in ("folder", "file", "") and place != place.strip()
    ):  # a type may take the blanks off
        return False
    return _fits(options, record.get("mount", "")) and _can_be_named(record)


def _fits(options: dict[str, Any], mount: str) -> bool:
    """Whether a mount can begin ids, and options that are a build's own are of their types."""
    flags = (options.get("include_secrets", False), options.get("history") or False)
    most = options.get("max_file_bytes", 1)
    named = not mount or (re.fullmatch(r"[\w. -]+", mount) is not None and bool(mount.strip(". ")))
    return named and isinstance(most, int) and most > 0 and all(isinstance(each, bool) for each in flags)


def _is_nearby(record: dict[str, Any], folder: Path) -> bool:
    """Whether a record has what is a path from here as a location, where metatree keeps the whole path as a place."""
    location = str(record.get("location", "")).removeprefix(f"{record['type']}:").strip()
    bases = (Path(), folder, folder.parent) if location else ()
    return any(is_here(base / location) for base in bases)


def _can_be_named(record: dict[str, Any]) -> bool:
    """Whether all texts of a record can be shown, kept and given to the system: no NUL, no half of a character."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
        os.fsencode(text)  # paths may have bytes that are no UTF-8
    except (ValueError, RecursionError):
        return False
    return "\\u0000" not in text


def tool_name(record: dict[str, Any]) -> str:
    """Return the tool that a permission is for, with its fingerprint."""
    mark = record.get("fingerprint")
    return _short(record.get("tool") or "a tool without a name") + (f" ({_short(mark)[:12]})" if mark else "")


def _object(value: Any) -> dict[str, Any]:
    """Return an object, or what a text says that is one in JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a table, none where a store has no such table; never by way of an index."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    return connection.execute(f"SELECT {columns} FROM {table} NOT INDEXED") if known.fetchone() else ()


def _count(connection: sqlite3.Connection, table: str) -> int:
    return next((int(number) for (number,) in _rows(connection, table, "count(*)")), 0)


def _deadline() -> Callable[[], bool]:
    end = time.monotonic() + _SECONDS
    return lambda: time.monotonic() > end
