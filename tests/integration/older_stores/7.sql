-- A memory as the code at b6fa259 made it
PRAGMA application_id=1836348005;
PRAGMA user_version=7;
CREATE TABLE board(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER, made_at REAL NOT NULL);
INSERT INTO "board" VALUES(1,'main',NULL,1.79537910587188029288e+09);
INSERT INTO "board" VALUES(2,'side',1,1.79537910588376092911e+09);
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
INSERT INTO "call" VALUES('25ef6db301fb9860828fbb8061c99c263169cb8040a2622eda71909e451cd680','once','1','{"number":1}','r1:1','r1',NULL,1795379170.86689,1795379105.86689,NULL,'{"text": "done"}');
CREATE TABLE content(id TEXT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "content" VALUES('memory:e1dcaad8d1','The hall lamp was replaced by Ann.');
CREATE TABLE fact(
    number INTEGER PRIMARY KEY,
    memory TEXT NOT NULL,
    id NOT NULL,
    attribute NOT NULL,
    value NOT NULL,
    provenance TEXT,
    UNIQUE(memory, id, attribute, value)
);
CREATE TABLE file(
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    encoding TEXT NOT NULL,
    reader TEXT NOT NULL,
    facts TEXT NOT NULL
, ctime_ns INTEGER NOT NULL DEFAULT -1) WITHOUT ROWID;
CREATE TABLE gone(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
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
CREATE TABLE history_file(
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    UNIQUE(source, path)
);
CREATE TABLE history_name(source TEXT NOT NULL, path TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY(source, path))
    WITHOUT ROWID;
CREATE TABLE history_touch(
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    path TEXT NOT NULL,
    old TEXT,
    PRIMARY KEY(file, number, path)
) WITHOUT ROWID;
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
INSERT INTO "item" VALUES(1,1,'8c26b3e79a6ebed7','trajectories','{"step": 1, "subtask": "log in"}',13,1,1,1000000000.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,NULL,NULL);
INSERT INTO "item" VALUES(2,1,'59d9679ae4cc2b66','questions','{"question": "Which colour?", "answer": null}',17,1,2,1000000000.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,NULL,NULL);
INSERT INTO "item" VALUES(3,2,'8c26b3e79a6ebed7','trajectories','{"step": 1, "subtask": "log in"}',13,1,1,1000000000.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,1,1);
INSERT INTO "item" VALUES(4,2,'59d9679ae4cc2b66','questions','{"question": "Which colour?", "answer": null}',17,1,2,1000000000.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,1,1);
INSERT INTO "item" VALUES(5,2,'9e2be181001a3596','trajectories','{"step": 2, "subtask": "x"}',11,1,3,1000000000.0,'ann','',NULL,NULL,NULL,NULL,0,'',0,NULL,NULL);
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
INSERT INTO "journal" VALUES(1,0,'begin',1.0,NULL,'{"machine":"m","version":1,"given":{"a":"ü"}}',NULL);
INSERT INTO "journal" VALUES(1,1,'outcome',2.0,7,'{"=":[1]}','{"calls":2.0}');
CREATE TABLE link(source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY(source, kind, target))
    WITHOUT ROWID;
CREATE TABLE mail(
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at REAL NOT NULL
);
INSERT INTO "mail" VALUES(1,1,'hello','{"b":2}',1.79537910586616110799e+09);
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('anchored','{"store": "c0268fda33584eb69067dbc40a9514da", "seq": 3, "rename": 0}');
INSERT INTO "meta" VALUES('memory-text:e1dcaad8d16f46844fb7a21786ae93d0','"memory:e1dcaad8d1"');
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
INSERT INTO "node" VALUES(1,'memory:e1dcaad8d1','lamps.md',9007199255789568,'memory','The hall lamp was replaced by Ann.','',NULL,NULL,NULL,NULL,NULL,'{"who": "ann", "at": "2001-09-09T01:46:40+00:00", "source": null, "by": "remember", "said": [{"who": "ann", "at": "2001-09-09T01:46:40+00:00", "source": null}]}',NULL,'7909c81c811aa32f2d1765fec6388aa4',1,NULL);
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
CREATE TABLE rename(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);
CREATE TABLE rule_token(
    memory TEXT NOT NULL,
    production TEXT NOT NULL,
    conditions TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY(memory, production, token, state)
) WITHOUT ROWID;
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
INSERT INTO "run" VALUES(1,'r1','m','elsewhere:1',1,1.79537916586588478093e+09,3,NULL,0);
CREATE INDEX node_parent ON node(parent, position);
CREATE INDEX node_home ON node(home) WHERE home IS NOT NULL;
CREATE INDEX override_parent ON override(parent, position) WHERE parent IS NOT NULL;
CREATE INDEX override_home ON override(home) WHERE home IS NOT NULL;
CREATE INDEX link_target ON link(target, kind);
CREATE INDEX file_digest ON file(digest);
CREATE INDEX item_changed ON item(board, changed);
CREATE INDEX item_section ON item(board, section, removed, number, pinned, tokens);
CREATE INDEX history_touch_number ON history_touch(number);
CREATE INDEX mail_run ON mail(run);
CREATE INDEX run_open ON run(machine, number) WHERE ended IS NULL OR ended = 'waiting';
