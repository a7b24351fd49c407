-- A store as the code at c341f27 made it
PRAGMA application_id=1836348005;
PRAGMA user_version=5;
CREATE TABLE board(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER, made_at REAL NOT NULL);
INSERT INTO "board" VALUES(1,'main',NULL,1.0);
CREATE TABLE board_waiter(
    port INTEGER PRIMARY KEY,
    token TEXT NOT NULL,
    board INTEGER NOT NULL,
    expires_at REAL NOT NULL
);
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
INSERT INTO "call" VALUES('h1','once','1','{}','r1:1','r1',NULL,1.0,2.0,NULL,'{"text":"done"}');
CREATE TABLE content(id TEXT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "content" VALUES('note','Ann said so, and Bob too: "yes"; no');
CREATE TABLE fact(
    number INTEGER PRIMARY KEY,
    memory TEXT NOT NULL,
    id NOT NULL,
    attribute NOT NULL,
    value NOT NULL,
    provenance TEXT,
    UNIQUE(memory, id, attribute, value)
);
INSERT INTO "fact" VALUES(1,'main',7,'is',2.5,NULL);
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
INSERT INTO "item" VALUES(2,1,'x','trajectories','{"step":1,"subtask":"log in"}',9,1,1,1.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,NULL,NULL);
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
INSERT INTO "journal" VALUES(3,0,'begin',1.0,NULL,'{"given":{"a":"ü"}}',NULL);
INSERT INTO "journal" VALUES(3,1,'outcome',2.0,7,'{"=":[1]}','{"calls":2.0}');
CREATE TABLE link(source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY(source, kind, target))
    WITHOUT ROWID;
INSERT INTO "link" VALUES('note','says','a.md');
CREATE TABLE mail(
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at REAL NOT NULL
);
INSERT INTO "mail" VALUES(9,3,'hello','{"b":2}',3.0);
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
CREATE TABLE rule_token(
    memory TEXT NOT NULL,
    production TEXT NOT NULL,
    conditions TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY(memory, production, token, state)
) WITHOUT ROWID;
INSERT INTO "rule_token" VALUES('main','p','c','[]','committed');
CREATE TABLE run(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    owner TEXT,
    token INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    ended TEXT
, refused INTEGER NOT NULL DEFAULT 0);
INSERT INTO "run" VALUES(3,'r1','m','elsewhere:1',2,5.5,1,'waiting',4);
CREATE INDEX node_parent ON node(parent, position);
CREATE INDEX node_home ON node(home) WHERE home IS NOT NULL;
CREATE INDEX override_parent ON override(parent, position) WHERE parent IS NOT NULL;
CREATE INDEX override_home ON override(home) WHERE home IS NOT NULL;
CREATE INDEX link_target ON link(target, kind);
CREATE INDEX file_digest ON file(digest);
CREATE INDEX item_changed ON item(board, changed);
CREATE INDEX item_section ON item(board, section, removed, number, pinned, tokens);
CREATE INDEX mail_run ON mail(run);
CREATE INDEX run_open ON run(machine, number) WHERE ended IS NULL OR ended = 'waiting';
