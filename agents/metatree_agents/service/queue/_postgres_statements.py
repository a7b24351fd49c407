"""Asking, claiming and answering in one statement each, for PostgreSQL, where every statement is a trip to the server.

They do the plain case and change nothing in any other; then `Queue` does it step by step in a transaction. SQLite has
no `WITH … UPDATE`, and no trips.

All parts of a statement see one snapshot, that of its beginning, except rows that it locks or changes: of these
PostgreSQL takes what is newest, and asks again whether the row still fits. Hence two rules. What decides is a
condition on a row that is locked or changed. And whoever changes the status of a query writes its topic's row in the
same transaction, so a topic whose row is as the snapshot has it has its queries as the snapshot has them, too.

`status || ''` keeps PostgreSQL from looking a topic's queries up in the index of all that are not settled: a plan that
was made while these were few is kept when they are many.

Lost: functions in the database, which servers of two versions would share; psycopg's pipeline, which saves waiting
and no work; locks on queries alone, which turns the order of locks round.
"""

from __future__ import annotations

from typing import Final

from metatree_agents.service.queue.turns import END_AT_ONCE, JOIN, LINE, NEXT_FREE, QUERIES

# The topic's row is taken by the insert or the update, so numbers are dense whoever asks at the same time.
ADD: Final = f"""
WITH made AS (
    INSERT INTO topic(id, owner, asker, made_at, last_seq, ready_at, trees) VALUES ($1, $2, $2, $3, 1, $3, $9)
    ON CONFLICT(id) DO UPDATE SET last_seq = topic.last_seq + 1,
        asker = CASE WHEN topic.ready_at IS NULL THEN excluded.asker ELSE topic.asker END,
        ready_at = COALESCE(topic.ready_at, excluded.ready_at) WHERE (topic.owner = $2 OR $4) AND topic.trees = $9
    RETURNING last_seq, asker, lease, ready_at
), joined AS (
    {JOIN.format(topic="made WHERE true")}
)
INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts, run)
SELECT $1, last_seq, $5, $2, $6, $7, $3, 'Open', 0, $8 FROM made RETURNING seq
"""

# The topic is the one whose turn it is, which is open in the snapshot and by its newest row. Where the lease of any has
# ended, none is taken: that is left to the transaction, which opens its queries again. Queries that the snapshot does
# not have stay Open, and the topic is ready again for them when those given out here are answered. Where all that the
# snapshot has as Open were answered since, and others came, none is given out: the one row that is returned then has
# no query, and the topic has to be handed back.
CLAIM: Final = f"""
WITH {LINE}, first AS MATERIALIZED (
    SELECT next.* FROM ({NEXT_FREE}) next WHERE (SELECT min(ready_at) FROM topic WHERE {{ended}}) IS NULL
), taken AS (
    UPDATE topic SET engine = $2, lease = $3, lease_until = $4, ready_at = $4, claimed_at = $1
    WHERE topic.id = (SELECT id FROM first) RETURNING topic.id, topic.trees
), moved AS (
    {END_AT_ONCE}
), given AS (
    UPDATE query SET status = 'Pending', attempts = attempts + 1, engine = $2
    FROM taken, LATERAL (
        SELECT seq FROM query AS open WHERE open.topic = taken.id AND open.status || '' = 'Open'
        ORDER BY seq LIMIT {QUERIES}
    ) oldest WHERE query.topic = taken.id AND query.seq = oldest.seq AND query.status || '' = 'Open'
    RETURNING {{columns}}
)
SELECT taken.id, taken.trees, given.* FROM taken LEFT JOIN given ON true
"""

# Only for a query that is being answered, in a topic whose row is free and as the snapshot has it (`xmin` is the
# transaction that wrote a row): so what else is open or being answered there, which the snapshot says, is still so, and
# nobody changes it before the end, for which the topic's row is needed. The time is read before the
# statement is sent, so those of two answers that come at the same moment may be the other way round. Not for a topic
# in which more is open, which its asker has to stand in the line for.
ANSWER: Final = """
WITH held AS MATERIALIZED (
    SELECT id FROM topic WHERE id = $1 AND xmin = (SELECT xmin FROM topic WHERE id = $1)
    FOR NO KEY UPDATE SKIP LOCKED
), others AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE status = 'Pending') > 0 AS pending,
        count(*) FILTER (WHERE status = 'Open') > 0 AS open
    FROM query WHERE topic = $1 AND seq <> $2 AND status || '' IN ('Open', 'Pending')
), done AS (
    UPDATE query SET status = 'Done', answer = $4, think = $5, sources = $6, engine = $7, answered_at = $8,
        ending = $10
    FROM held, others WHERE query.topic = $1 AND query.seq = $2 AND query.text = $3 AND query.status || '' = 'Pending'
        AND (others.pending OR NOT others.open)
    RETURNING query.topic, others.pending
)
UPDATE topic SET
    engine = CASE WHEN pending THEN engine END,
    lease = CASE WHEN pending THEN lease END,
    lease_until = CASE WHEN pending THEN $9 END,
    ready_at = CASE WHEN pending THEN $9 END
FROM done WHERE topic.id = done.topic
"""
