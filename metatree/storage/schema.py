"""The schema of every store, as a list of scripts that are only ever added to.

A store of version n has run the first n scripts. A script that has been released is never edited: what it lacks
comes as another one.
"""

from __future__ import annotations

from typing import Final

_TREE = """
-- Small facts, as JSON: sources, times, marks.
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- The nodes of one layer. `seq` is the key, so rows lie in the order of their last change and need no index for it.
-- parent is NULL for the root and for a detached node; a node is in the tree when climbing reaches the root.
CREATE TABLE node(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    source_type TEXT,
    source_path TEXT,
    start_line INTEGER,
    end_line INTEGER,
    parts TEXT,
    provenance TEXT,
    attributes TEXT,
    digest TEXT NOT NULL,
    kept INTEGER NOT NULL,
    home TEXT
);
CREATE INDEX node_parent ON node(parent, position);
CREATE INDEX node_home ON node(home) WHERE home IS NOT NULL;

-- Text that the tree keeps itself.
CREATE TABLE content(id TEXT PRIMARY KEY, text TEXT NOT NULL);

-- Ids that were in this layer and are not any more.
CREATE TABLE gone(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);

-- What a memory layer says about nodes of the built layer: moved (parent, position), hidden, or described otherwise.
CREATE TABLE override(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT,
    position INTEGER,
    home TEXT,
    hidden INTEGER NOT NULL DEFAULT 0,
    title TEXT,
    description TEXT,
    provenance TEXT,
    basis TEXT
);
CREATE INDEX override_parent ON override(parent, position) WHERE parent IS NOT NULL;
CREATE INDEX override_home ON override(home) WHERE home IS NOT NULL;

CREATE TABLE link(source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY(source, kind, target))
    WITHOUT ROWID;
CREATE INDEX link_target ON link(target, kind);

-- The files that a built layer was made from.
CREATE TABLE file(
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    encoding TEXT NOT NULL,
    reader TEXT NOT NULL,
    facts TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX file_digest ON file(digest);

-- What was left out of a built layer, and why.
CREATE TABLE omission(path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;

-- Files and folders that kept what they hold under another path; `seq` is that of the layer.
CREATE TABLE rename(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);
"""

_RUNS = """
-- Runs of machines. `token` is raised by each process that takes a run over; its writes carry it.
CREATE TABLE run(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    owner TEXT,
    token INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    ended TEXT
);

-- What happened to a run, in order; never changed.
CREATE TABLE journal(
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    effect INTEGER,
    body TEXT,
    used TEXT,
    PRIMARY KEY(run, seq)
) WITHOUT ROWID;

-- Tool calls: being made (owner, no result), or made.
CREATE TABLE call(
    hash TEXT PRIMARY KEY,
    tool TEXT NOT NULL,
    version TEXT NOT NULL,
    arguments TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    owner TEXT,
    expires_at REAL NOT NULL,
    at REAL NOT NULL,
    until REAL,
    result TEXT
) WITHOUT ROWID;
"""

_BOARDS = """
-- Blackboards; `parent` is the one that a fork was made of.
CREATE TABLE board(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER, made_at REAL NOT NULL);

-- What is on them, in the order of `number`. `changed` is the version of the board at the item's last change; a
-- removed item keeps its row, without its data, so that readers learn of it and versions never go back. `base`
-- and `synced`, for a fork: the item's version there and here when both boards last said the same.
CREATE TABLE item(
    number INTEGER PRIMARY KEY,
    board INTEGER NOT NULL,
    id TEXT NOT NULL,
    section TEXT NOT NULL,
    data TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    version INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    at REAL NOT NULL,
    agent TEXT NOT NULL,
    run TEXT NOT NULL,
    step INTEGER,
    round INTEGER,
    sources TEXT,
    audience TEXT,
    pinned INTEGER NOT NULL,
    image TEXT NOT NULL,
    removed INTEGER NOT NULL,
    base INTEGER,
    synced INTEGER,
    UNIQUE(board, id)
);
CREATE INDEX item_changed ON item(board, changed);
-- Choosing what goes into a prompt reads this index alone.
CREATE INDEX item_section ON item(board, section, removed, number, pinned, tokens);

-- Images of boards; the bytes lie beside the store, under the same name.
CREATE TABLE image(
    name TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    width INTEGER,
    height INTEGER,
    look TEXT,
    thumbnail TEXT,
    thumbnail_width INTEGER,
    thumbnail_height INTEGER
) WITHOUT ROWID;

-- Who waits for a change of a board: a port on this machine, and the word that wakes it.
CREATE TABLE board_waiter(
    port INTEGER PRIMARY KEY,
    token TEXT NOT NULL,
    board INTEGER NOT NULL,
    expires_at REAL NOT NULL
);
"""

_RULES = """
-- Stated facts of working memories, in the order of their coming. A place is an integer, a real or a text as it is; a
-- decimal, a fact or a big integer is a blob of JSON.
CREATE TABLE fact(
    number INTEGER PRIMARY KEY,
    memory TEXT NOT NULL,
    id NOT NULL,
    attribute NOT NULL,
    value NOT NULL,
    provenance TEXT,
    UNIQUE(memory, id, attribute, value)
);

-- Tokens that were dealt with (committed), and those of them that are to be removed (withdrawn). `conditions` is a
-- checksum of the production's text: tokens of another text mean nothing.
CREATE TABLE rule_token(
    memory TEXT NOT NULL,
    production TEXT NOT NULL,
    conditions TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY(memory, production, token, state)
) WITHOUT ROWID;
"""

_HISTORY = """
-- The commits of the repositories that sources lie in; `number` grows from older to newer. `source` is the mount of
-- the source, empty where a tree has one source alone.
CREATE TABLE history_commit(
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    hash TEXT NOT NULL,
    parents TEXT NOT NULL,
    at INTEGER NOT NULL,
    author TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    files INTEGER NOT NULL,
    UNIQUE(source, hash)
);

-- Files through all their names; `path` is the one that a file has now, or had when it was deleted.
CREATE TABLE history_file(
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    UNIQUE(source, path)
);

-- Which file a name stood for last.
CREATE TABLE history_name(source TEXT NOT NULL, path TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY(source, path))
    WITHOUT ROWID;

-- Which files a commit touched, with the name that they had then; `old` is the name before a rename.
CREATE TABLE history_touch(
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    path TEXT NOT NULL,
    old TEXT,
    PRIMARY KEY(file, number, path)
) WITHOUT ROWID;
CREATE INDEX history_touch_number ON history_touch(number);
"""


_STATUS_TIMES = """
-- When the status of a file last changed, which an edit moves on even if it keeps size and time; -1 is not known.
ALTER TABLE file ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT -1;
"""

_MAIL = """
-- Signals for runs that somebody else may hold; the holder moves them into the journal.
CREATE TABLE mail(
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX mail_run ON mail(run);

-- Writes that came after another process had taken the run over. `cancel` holds bits: 1 stop, 2 there is mail.
ALTER TABLE run ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_open ON run(machine, number) WHERE ended IS NULL OR ended = 'waiting';
"""

MIGRATIONS: Final[tuple[str, ...]] = (_TREE, _RUNS, _BOARDS, _RULES, _HISTORY, _STATUS_TIMES, _MAIL)
