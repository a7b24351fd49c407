"""The tables of the service, as scripts that are only ever added to; for SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from metatree_agents.service.replication.tree_schema import TREES

ADDRESS: Final = "address"
"""The identity of a database that was known by its address."""

_FIRST = """
-- Who may call. The secret itself is needed: callers prove that they have it by a hash of it with a nonce.
CREATE TABLE service_user(
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    secret TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL
);

-- Nonces that were used: one that is forgotten could be replayed.
CREATE TABLE service_nonce(name TEXT NOT NULL, nonce TEXT NOT NULL, PRIMARY KEY(name, nonce));

-- Sessions of the web page, by a hash of the cookie.
CREATE TABLE service_session(
    cookie TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    csrf TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);

-- Topics. `ready_at`: when an engine may claim it, NULL when there is nothing to claim; the time of the oldest open
-- query, or the end of the lease under which its queries are being answered.
CREATE TABLE topic(
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    last_seq BIGINT NOT NULL,
    ready_at DOUBLE PRECISION,
    engine TEXT,
    lease TEXT,
    lease_until DOUBLE PRECISION
);
CREATE INDEX topic_ready ON topic(ready_at) WHERE ready_at IS NOT NULL;
CREATE INDEX topic_owner ON topic(owner, made_at);

-- Queries. `status`: Open, Pending, Done, Failed or Waiting.
CREATE TABLE query(
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    text TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    model TEXT NOT NULL,
    modifiers TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    answer TEXT,
    think TEXT,
    sources TEXT,
    engine TEXT,
    answered_at DOUBLE PRECISION,
    PRIMARY KEY(topic, seq)
);
CREATE INDEX query_answered ON query(answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX query_unsettled ON query(status, at) WHERE status IN ('Open', 'Pending', 'Failed');

-- What happens while a query is answered, for those who watch.
CREATE TABLE progress(
    number {serial},
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX progress_query ON progress(topic, seq, number);

-- Lookups: one for each fragment, count, threshold and state of the index.
CREATE TABLE lookup(
    number {serial},
    key TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    fragment TEXT NOT NULL,
    count BIGINT NOT NULL,
    threshold DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    out_until DOUBLE PRECISION,
    engine TEXT,
    matches TEXT
);
CREATE INDEX lookup_open ON lookup(number) WHERE matches IS NULL;
CREATE INDEX lookup_fingerprint ON lookup(fingerprint);

-- Which queries asked for which lookups.
CREATE TABLE lookup_wish(
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    lookup BIGINT NOT NULL,
    PRIMARY KEY(topic, seq, lookup)
);

-- What people recommended; `node` is the memory that it became.
CREATE TABLE recommendation(
    number {serial},
    topic TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    query TEXT NOT NULL,
    fragment TEXT NOT NULL,
    comment TEXT NOT NULL,
    type TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    node TEXT
);
"""

_FRONT = """
-- Since when an engine has a topic; `lease_until` moves on while it works.
ALTER TABLE topic ADD COLUMN claimed_at DOUBLE PRECISION;

-- When each user was last seen, to the minute.
CREATE TABLE service_use(name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);

-- Keys that are sent as they are (`Authorization: Bearer`), by their SHA-256; several for a user.
CREATE TABLE service_key(
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION
);
CREATE INDEX service_key_name ON service_key(name);

-- Which query a chat request became. `asked` is a hash of its asker and messages; `number` counts those that were asked
-- again on purpose. `delivered_at`: when its answer went out, NULL while it did not.
CREATE TABLE chat(
    asked TEXT NOT NULL,
    number BIGINT NOT NULL,
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    retry TEXT,
    delivered_at DOUBLE PRECISION,
    PRIMARY KEY(asked, number)
);
CREATE INDEX chat_topic ON chat(topic);
"""

_ASKED = """
-- What the run of a query asks a person, as JSON; a query that waits for an answer is Waiting.
ALTER TABLE query ADD COLUMN asked TEXT;
DROP INDEX query_unsettled;
CREATE INDEX query_unsettled ON query(status, at) WHERE status IN ('Open', 'Pending', 'Failed', 'Waiting');
"""

_INDEXES = """
-- Which state of its index each engine looks fragments up in; a lookup made in another state is made again when it is
-- asked for again.
CREATE TABLE service_index(engine TEXT PRIMARY KEY, version TEXT NOT NULL);
"""

_LOGIN = """
-- One-time codes that log somebody in to the web page, by a hash of the code.
CREATE TABLE service_login(code TEXT PRIMARY KEY, name TEXT NOT NULL, expires_at DOUBLE PRECISION NOT NULL);
CREATE INDEX service_session_name ON service_session(name);
"""

_RUNS = """
-- By what name the run of a query goes in journals: one that no other query has, even where another topic had the same
-- name before. NULL for queries of older versions, whose runs go by a hash.
ALTER TABLE query ADD COLUMN run TEXT;
"""

_WISHES = """
-- Whether anybody wishes for a lookup any more is asked when a topic is deleted.
CREATE INDEX lookup_wish_lookup ON lookup_wish(lookup);
"""

# Both databases have `random()`, and each its own: what is wanted is that no two of these are the same.
_RANDOM: Final = " || ".join(["CAST(random() AS TEXT)"] * 4)
_IDENTITY = f"""
-- What tells this database from all others, whatever its address: the last row is its name now. A restore adds one.
-- `after`: the number of the last recommendation that came under an earlier name. Databases of older versions were
-- known by their address alone.
CREATE TABLE service_identity(number {{serial}}, id TEXT NOT NULL UNIQUE, after BIGINT NOT NULL);
INSERT INTO service_identity(id, after) SELECT '{ADDRESS}', 0 WHERE EXISTS (SELECT 1 FROM recommendation);
INSERT INTO service_identity(id, after) SELECT {_RANDOM}, coalesce(max(number), 0) FROM recommendation;
"""

_TURNS = """
-- Who asked the oldest open query of a topic, while it can be claimed, and whom it was claimed for while it is held.
ALTER TABLE topic ADD COLUMN asker TEXT NOT NULL DEFAULT '';
UPDATE topic SET asker = owner;
DROP INDEX topic_ready;
CREATE INDEX topic_open ON topic(asker, ready_at, id) WHERE lease IS NULL AND ready_at IS NOT NULL;
CREATE INDEX topic_held ON topic(asker) WHERE engine IS NOT NULL;
CREATE INDEX topic_until ON topic(ready_at) WHERE engine IS NOT NULL;

-- The line of those who have a topic that can be claimed; who had a turn goes to its end. `asked` counts what they
-- opened.
CREATE TABLE turn(asker TEXT PRIMARY KEY, number BIGINT, asked BIGINT NOT NULL);
CREATE INDEX turn_number ON turn(number, asker) WHERE number IS NOT NULL;
INSERT INTO turn(asker, number, asked) SELECT asker, 1, 1 FROM topic
    WHERE lease IS NULL AND ready_at IS NOT NULL GROUP BY asker;
"""

_NONCES = """
-- When a nonce ends that carries its time; NULL for one that is kept for ever.
ALTER TABLE service_nonce ADD COLUMN ends_at DOUBLE PRECISION;
CREATE INDEX service_nonce_ends ON service_nonce(ends_at) WHERE ends_at IS NOT NULL;

-- Up to when nonces that have ended were deleted; one row. None that ends before is accepted, whatever the clock says.
CREATE TABLE service_nonce_end(ends_at DOUBLE PRECISION NOT NULL);
"""

_SERVERS = """
-- Servers that are at work, and where people on their machines reach them.
CREATE TABLE service_server(
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    machine TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL
);
"""

SCRIPTS: Final[tuple[str, ...]] = (
    _FIRST,
    _FRONT,
    _ASKED,
    TREES,
    _INDEXES,
    _LOGIN,
    _RUNS,
    _WISHES,
    _IDENTITY,
    _TURNS,
    _NONCES,
    _SERVERS,
)


def statements(script: str, *, serial: str, blob: str = "BLOB") -> Iterator[str]:
    """Yield the statements of a script.

    Args:
        serial: the type of a key that the database counts up.
        blob: the type of bytes.
    """
    lines = (line for line in script.splitlines() if not line.startswith("--"))
    for statement in "\n".join(lines).split(";"):
        if statement.strip():
            yield statement.replace("{serial}", serial).replace("{blob}", blob)
