"""The tables of the text index and of the index of commits, in the store of the built layer.

All of it can be built again, so tables of another version are dropped. Where the version is kept, each index says.
"""

from __future__ import annotations

from typing import Final

from metatree.storage.schema import Schema

_TEXT: Final = """
CREATE TABLE text_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE text_node(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE text_record(chunk INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- `made` is the generation that wrote a segment, since numbers of segments begin again in a new index.
CREATE TABLE text_segment(
    segment INTEGER PRIMARY KEY,
    made INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    firsts TEXT NOT NULL
);
CREATE TABLE text_posting(
    segment INTEGER NOT NULL, block INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (segment, block)
);
CREATE TABLE text_vector(chunk INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""

_COMMITS: Final = """
CREATE TABLE commit_posting(
    segment INTEGER NOT NULL, block INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (segment, block)
);
CREATE TABLE commit_length(segment INTEGER PRIMARY KEY, data BLOB NOT NULL, firsts TEXT NOT NULL);
"""

TEXT: Final = Schema("", "", 9, _TEXT)
"""Its version is also that of what is written to the tables."""
COMMITS: Final = Schema("", "", 2, _COMMITS)
