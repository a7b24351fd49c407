-- A store as the code at fc850a0 made it
PRAGMA application_id=1836348005;
PRAGMA user_version=1;
CREATE TABLE content(id TEXT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "content" VALUES('note','Ann said so, and Bob too: "yes"; no');
CREATE TABLE file(
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    encoding TEXT NOT NULL,
    reader TEXT NOT NULL,
    facts TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "file" VALUES('a.md',1,2,'d','utf-8','r','{}');
CREATE TABLE gone(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE link(source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY(source, kind, target))
    WITHOUT ROWID;
INSERT INTO "link" VALUES('note','says','a.md');
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('sources','[]');
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
INSERT INTO "node" VALUES(5,'note','.',1,'note','Ann','said so',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'d',1,'a.md');
CREATE TABLE omission(path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
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
INSERT INTO "override" VALUES(6,'a.md','.',3,NULL,1,NULL,NULL,NULL,'b');
CREATE TABLE rename(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);
INSERT INTO "rename" VALUES(1,7,'a.md','b.md');
CREATE INDEX node_parent ON node(parent, position);
CREATE INDEX node_home ON node(home) WHERE home IS NOT NULL;
CREATE INDEX override_parent ON override(parent, position) WHERE parent IS NOT NULL;
CREATE INDEX override_home ON override(home) WHERE home IS NOT NULL;
CREATE INDEX link_target ON link(target, kind);
CREATE INDEX file_digest ON file(digest);
