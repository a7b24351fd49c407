"""The tables of the service, for SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Final

from metatree.storage.schema import Schema
from metatree_agents.service.replication.tree_schema import TREES

SCHEMA: Final = "metatree_service"
"""The schema of a PostgreSQL database that they are in, where its address does not say it."""
ADDRESS: Final = "address"
"""The identity of a database that was known by its address."""

_SERVICE: Final = """
-- Who may call. The secret itself is needed: callers prove that they have it by a hash of it with a nonce.
CREATE TABLE service_user(
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    secret TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL
);

-- Keys that are sent as they are (`Authorization: Bearer`), by their SHA-256; several for a user.
CREATE TABLE service_key(
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION
);
CREATE INDEX service_key_name ON service_key(name);

-- When each user was last seen, to the minute.
CREATE TABLE service_use(name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);

-- Nonces that were used: one that is forgotten could be replayed. `ends_at`: when one ends that carries its time; NULL
-- for one that is kept for ever.
CREATE TABLE service_nonce(
    name TEXT NOT NULL,
    nonce TEXT NOT NULL,
    ends_at DOUBLE PRECISION,
    PRIMARY KEY(name, nonce)
);
CREATE INDEX service_nonce_ends ON service_nonce(ends_at) WHERE ends_at IS NOT NULL;

-- Up to when nonces that have ended were deleted; one row. None that ends before is accepted, whatever the clock says.
CREATE TABLE service_nonce_end(ends_at DOUBLE PRECISION NOT NULL);

-- Sessions of the web page, by a hash of the cookie.
CREATE TABLE service_session(
    cookie TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    csrf TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX service_session_name ON service_session(name);

-- One-time codes that log somebody in to the web page, by a hash of the code.
CREATE TABLE service_login(code TEXT PRIMARY KEY, name TEXT NOT NULL, expires_at DOUBLE PRECISION NOT NULL);

-- Topics. `ready_at`: when an engine may claim it, NULL when there is nothing to claim; the time of the oldest open
-- query, or the end of the lease under which its queries are being answered. `claimed_at`: since when an engine has it;
-- `lease_until` moves on while it works. `asker`: who asked the oldest open query of a topic, while it can be claimed,
-- and whom it was claimed for while it is held.
CREATE TABLE topic(
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    last_seq BIGINT NOT NULL,
    ready_at DOUBLE PRECISION,
    engine TEXT,
    lease TEXT,
    lease_until DOUBLE PRECISION,
    claimed_at DOUBLE PRECISION,
    asker TEXT NOT NULL DEFAULT ''
);
CREATE INDEX topic_owner ON topic(owner, made_at);
CREATE INDEX topic_open ON topic(asker, ready_at, id) WHERE lease IS NULL AND ready_at IS NOT NULL;
CREATE INDEX topic_held ON topic(asker) WHERE engine IS NOT NULL;
CREATE INDEX topic_until ON topic(ready_at) WHERE engine IS NOT NULL;

-- The line of those who have a topic that can be claimed; who had a turn goes to its end. `asked` counts what they
-- opened.
CREATE TABLE turn(asker TEXT PRIMARY KEY, number BIGINT, asked BIGINT NOT NULL);
CREATE INDEX turn_number ON turn(number, asker) WHERE number IS NOT NULL;

-- Queries. `status`: Open, Pending, Done, Failed or Waiting, for an answer to what its run asks a person: `asked`, as
-- JSON. `run`: by what name its run goes in journals, one that no other query has, even where another topic had the
-- same name before.
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
    asked TEXT,
    run TEXT,
    PRIMARY KEY(topic, seq)
);
CREATE INDEX query_answered ON query(answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX query_unsettled ON query(status, at) WHERE status IN ('Open', 'Pending', 'Failed', 'Waiting');

-- What happens while a query is answered, for those who watch.
CREATE TABLE progress(
    number {counter},
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX progress_query ON progress(topic, seq, number);

-- Lookups: one for each fragment, count, threshold and state of the index.
CREATE TABLE lookup(
    number {counter},
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
CREATE INDEX lookup_wish_lookup ON lookup_wish(lookup);

-- Which state of its index each engine looks fragments up in; a lookup made in another state is made again when it is
-- asked for again.
CREATE TABLE service_index(engine TEXT PRIMARY KEY, version TEXT NOT NULL);

-- What people recommended; `node` is the memory that it became.
CREATE TABLE recommendation(
    number {counter},
    topic TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    query TEXT NOT NULL,
    fragment TEXT NOT NULL,
    comment TEXT NOT NULL,
    type TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    node TEXT
);

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

-- Servers that are at work, and where people on their machines reach them.
CREATE TABLE service_server(
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    machine TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL
);
"""

# Both databases have `random()`, and each its own: what is wanted is that no two of these are the same.
_RANDOM: Final = " || ".join(["CAST(random() AS TEXT)"] * 4)
_IDENTITY: Final = f"""
-- What tells this database from all others, whatever its address: the last row is its name now. A restore adds one.
-- `after`: the number of the last recommendation that came under an earlier name.
CREATE TABLE service_identity(number {{counter}}, id TEXT NOT NULL UNIQUE, after BIGINT NOT NULL);
INSERT INTO service_identity(id, after) SELECT {_RANDOM}, 0;
"""

_ENDING: Final = """
-- How the question ended, as JSON: `end`, `open`, `closest`; NULL when the engine did not say.
ALTER TABLE query ADD COLUMN ending TEXT;
"""

_TITLE_AND_UNDO: Final = """
-- What a person calls the topic; NULL while nobody has renamed it.
ALTER TABLE topic ADD COLUMN title TEXT;
-- The number of the recommendation that this one takes back; NULL for all others.
ALTER TABLE recommendation ADD COLUMN withdraws BIGINT;
"""

_MANY_TREES: Final = """
-- The trees that have names. A set of trees has the bit of each one's number; bit 0 is the tree without a name.
CREATE TABLE service_tree(number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, title TEXT NOT NULL);
-- Who may ask a tree besides administrators: `everybody`, `user:NAME` or `group:NAME`.
CREATE TABLE service_tree_right(tree BIGINT NOT NULL, who TEXT NOT NULL, PRIMARY KEY(tree, who));
CREATE INDEX service_tree_right_who ON service_tree_right(who);
CREATE TABLE service_group(name TEXT NOT NULL, member TEXT NOT NULL, PRIMARY KEY(name, member));
CREATE INDEX service_group_member ON service_group(member);
-- Which sets of named trees engines wait for, and when each last did.
CREATE TABLE service_engine(
    name TEXT NOT NULL,
    trees BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY(name, trees)
);
-- The trees that a topic searches; the one that a recommendation is for; those that a fragment is looked up in.
ALTER TABLE topic ADD COLUMN trees BIGINT NOT NULL DEFAULT 1;
ALTER TABLE recommendation ADD COLUMN trees BIGINT NOT NULL DEFAULT 1;
ALTER TABLE lookup ADD COLUMN trees BIGINT NOT NULL DEFAULT 1;
CREATE INDEX recommendation_withdraws ON recommendation(withdraws) WHERE withdraws IS NOT NULL;
CREATE INDEX recommendation_topic ON recommendation(topic, number);
CREATE INDEX recommendation_by ON recommendation(on_behalf_of, number);
"""

_LEAVING: Final = """
-- When an engine said that it goes; NULL while it is there, as far as is known.
ALTER TABLE service_use ADD COLUMN left_at DOUBLE PRECISION;
-- What its owner calls a key.
ALTER TABLE service_key ADD COLUMN label TEXT NOT NULL DEFAULT '';
"""

SERVICE: Final = Schema(
    "the service in ",
    "service_schema",
    13,
    _SERVICE + TREES + _IDENTITY,
    (_ENDING, _TITLE_AND_UNDO, _MANY_TREES, _LEAVING),
)
"""Earlier versions were counted by the scripts that made them."""
