"""The tables in which a service keeps a tree for engines on other machines; for SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Final

TREES: Final = """
-- The tree of this service, one row. `name` tells this database from all others; `memory` is the number of the latest
-- change of the memory layer; `publisher` may publish until its lease ends, and proves it by `token`.
CREATE TABLE tree_state(
    one BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    publisher TEXT,
    publisher_until DOUBLE PRECISION NOT NULL,
    token BIGINT NOT NULL
);

-- The latest versions of the built layer. `digest`: of its file; `mark`: what it was made from; `files`: the digests
-- of that file and of those that its nodes were built from, a JSON array.
CREATE TABLE tree_version(
    version BIGINT PRIMARY KEY,
    size BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    mark TEXT NOT NULL,
    digest TEXT NOT NULL,
    files TEXT NOT NULL
);

-- Files by their digests, in parts, each packed by zlib.
CREATE TABLE tree_file(digest TEXT NOT NULL, part BIGINT NOT NULL, data {blob} NOT NULL, PRIMARY KEY(digest, part));

-- The memory layer: what each row says, NULL when it is gone, and the number of its latest change.
CREATE TABLE tree_memory(
    what TEXT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    body TEXT,
    engine TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY(what, id)
);
CREATE UNIQUE INDEX tree_memory_number ON tree_memory(number);
"""
