BEGIN TRANSACTION;
CREATE TABLE board(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent BIGINT, made_at DOUBLE PRECISION NOT NULL);
CREATE TABLE board_waiter(
    port BIGINT PRIMARY KEY,
    token TEXT NOT NULL,
    board BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE call(
    hash TEXT PRIMARY KEY,
    tool TEXT NOT NULL,
    version TEXT NOT NULL,
    arguments TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    owner TEXT,
    expires_at DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION,
    result TEXT
) WITHOUT ROWID;
CREATE TABLE chat(
    asked TEXT NOT NULL,
    number BIGINT NOT NULL,
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    retry TEXT,
    delivered_at DOUBLE PRECISION,
    PRIMARY KEY(asked, number)
);
CREATE TABLE content(id TEXT PRIMARY KEY, text TEXT NOT NULL);
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
    facts TEXT NOT NULL,
    ctime_ns INTEGER NOT NULL DEFAULT -1
) WITHOUT ROWID;
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
    size BIGINT NOT NULL,
    width BIGINT,
    height BIGINT,
    look TEXT,
    thumbnail TEXT,
    thumbnail_width BIGINT,
    thumbnail_height BIGINT
) WITHOUT ROWID;
CREATE TABLE item(
    number INTEGER PRIMARY KEY,
    board BIGINT NOT NULL,
    id TEXT NOT NULL,
    section TEXT NOT NULL,
    data TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    version BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    agent TEXT NOT NULL,
    run TEXT NOT NULL,
    step BIGINT,
    round BIGINT,
    sources TEXT,
    audience TEXT,
    pinned BIGINT NOT NULL,
    image TEXT NOT NULL,
    removed BIGINT NOT NULL,
    base BIGINT,
    synced BIGINT,
    UNIQUE(board, id)
);
CREATE TABLE journal(
    run BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    effect BIGINT,
    body TEXT,
    used TEXT,
    PRIMARY KEY(run, seq)
) WITHOUT ROWID;
CREATE TABLE link(source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY(source, kind, target))
    WITHOUT ROWID;
CREATE TABLE lookup(
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    fragment TEXT NOT NULL,
    count BIGINT NOT NULL,
    threshold DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    out_until DOUBLE PRECISION,
    engine TEXT,
    matches TEXT
, trees BIGINT NOT NULL DEFAULT 1);
INSERT INTO "lookup" VALUES(1,'f88c6c254014d91e578edd648b4fcee2d20f867445f848483d7f6e1d1dd97e26','0eea8415493b','watts',3,0.5,1.79546428733274745937e+09,NULL,NULL,NULL,1);
CREATE TABLE lookup_wish(
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    lookup BIGINT NOT NULL,
    PRIMARY KEY(topic, seq, lookup)
);
INSERT INTO "lookup_wish" VALUES('lamps',1,1);
CREATE TABLE mail(
    number INTEGER PRIMARY KEY,
    run BIGINT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('trust:ffe5e184a84f8eda','{"path": "406191af7fed3e809785480551c3395144aaac91f304ece401492c58813dbcd5", "inode": "12d12830b33549275d7bc26efeab638f9306b89f1aafbaf22cbc469ac292d3f7", "seal": "7cff06a300b231584e7f3ddb70b4c5fd06222c4225491f935ba92b817a314057"}');
INSERT INTO "meta" VALUES('trust:id','"f21fc8e86cd46d9459f4c7cadf4198d2"');
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
CREATE TABLE progress(
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    seq BIGINT NOT NULL,
    data TEXT NOT NULL
);
INSERT INTO "progress" VALUES(1,'lamps',1,'{"Event": "tool", "Text": "read the hall"}');
INSERT INTO "progress" VALUES(2,'pays',1,'{"Event": "waits", "Node": null, "Choice": null, "Text": "waits for a person: Who pays the lamps?"}');
INSERT INTO "progress" VALUES(3,'stopped',1,'{"Event": "stopped", "Node": null, "Choice": null, "Text": "stopped by John_Doe"}');
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
    run TEXT, ending TEXT,
    PRIMARY KEY(topic, seq)
);
INSERT INTO "query" VALUES('lamps',1,'How many watts?','User_1','default','{}',1.79546428729478955272e+09,'Done',1,'["nine watts"]','[]','[{"Node": "hall/lamp", "Title": "Lamp", "Quote": "nine watts", "Path": "hall.md", "Lines": [2, 2], "Number": 1}]','Inference_1',1.795464287327300787e+09,NULL,'query-4f93520dfe42f06d5cbc','{"end": "answered", "open": [], "closest": [], "by": null}');
INSERT INTO "query" VALUES('pays',1,'Who pays?','User_1','default','{}',1.79546428733546209336e+09,'Waiting',0,NULL,NULL,NULL,'Inference_1',NULL,'[{"key": "k", "question": "Who pays the lamps?", "kind": "question", "at": 1795464287.3400874, "answer": null, "by": null}]','query-87c6af021c4361f73124',NULL);
INSERT INTO "query" VALUES('stopped',1,'Stop here','John_Doe','default','{}',1.79546428734234619134e+09,'Stopped',0,NULL,NULL,NULL,NULL,1.79546428734420728682e+09,NULL,'query-85d6bd78e245a1504571','{"end": "stopped", "open": [], "closest": [], "by": "John_Doe"}');
INSERT INTO "query" VALUES('open',1,'And the garden?','User_1','default','{}',1.79546428734640312191e+09,'Open',0,NULL,NULL,NULL,NULL,NULL,NULL,'query-d5e90f59adf9ba94057b',NULL);
CREATE TABLE recommendation(
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    query TEXT NOT NULL,
    fragment TEXT NOT NULL,
    comment TEXT NOT NULL,
    type TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    node TEXT
, withdraws BIGINT, trees BIGINT NOT NULL DEFAULT 1);
INSERT INTO "recommendation" VALUES(1,'lamps','User_1','How many watts?','nine watts','seen','Promote Answer',1.79546428733028459552e+09,NULL,NULL,1);
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
    token BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    flags BIGINT NOT NULL DEFAULT 0,
    ended TEXT,
    refused BIGINT NOT NULL DEFAULT 0
, wake_at DOUBLE PRECISION);
CREATE TABLE schedule(
    name TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    next_at DOUBLE PRECISION,
    given TEXT NOT NULL
);
CREATE TABLE service_engine(
    name TEXT NOT NULL,
    trees BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY(name, trees)
);
CREATE TABLE service_group(name TEXT NOT NULL, member TEXT NOT NULL, PRIMARY KEY(name, member));
CREATE TABLE service_identity(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, after BIGINT NOT NULL);
INSERT INTO "service_identity" VALUES(1,'-275207461515025724531899273483485607161150002965899727573317895108650955595',0);
CREATE TABLE service_index(engine TEXT PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE service_key(
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION
);
INSERT INTO "service_key" VALUES('cf804736dbf567b02f62b546be41f9bb840e50b1f971b6df29b46a6b6feb4c8a','Frontend_1',1.79546428719819116588e+09,NULL);
INSERT INTO "service_key" VALUES('9ef84dbc30ad0adbb2bc5e6edf5c41cf5cf9f2aae41fd79578bdc15792a5b031','Inference_1',1.79546428719840407369e+09,NULL);
INSERT INTO "service_key" VALUES('f7d7bc23a082cc092d15f2b8a2ac12e175318b86dce5de5124870d0026cdca6e','Inference_2',1.79546428719858622551e+09,NULL);
INSERT INTO "service_key" VALUES('8fc818fdf4d8d553f93729f7ea4bdf93597be58284c75c2a2814da52ff446d76','User_1',1.79546428720012354852e+09,NULL);
INSERT INTO "service_key" VALUES('35d3952f886a6ce4f3ad3f3ecf05ff37c8dc635b5b2df1531af9eba2d6ce3181','User_2',1.79546428720028567317e+09,NULL);
INSERT INTO "service_key" VALUES('cb82e4e60104b1356d4d0adf15f9a38015161f92b0b872666af19dfa62b67479','Admin_1',1.79546428720041632647e+09,NULL);
CREATE TABLE service_login(code TEXT PRIMARY KEY, name TEXT NOT NULL, expires_at DOUBLE PRECISION NOT NULL);
CREATE TABLE service_nonce(
    name TEXT NOT NULL,
    nonce TEXT NOT NULL,
    ends_at DOUBLE PRECISION,
    PRIMARY KEY(name, nonce)
);
INSERT INTO "service_nonce" VALUES('User_1','d72f744f5a617d30',NULL);
INSERT INTO "service_nonce" VALUES('Inference_1','383572f554058bd5',NULL);
INSERT INTO "service_nonce" VALUES('Inference_1','8000c6abbcde2652',NULL);
INSERT INTO "service_nonce" VALUES('Inference_1','9cd6a710924dbfbc',NULL);
INSERT INTO "service_nonce" VALUES('User_1','5a80605111f2be15',NULL);
INSERT INTO "service_nonce" VALUES('User_1','051afde54f568cbe',NULL);
INSERT INTO "service_nonce" VALUES('User_1','1349a1c08248345f',NULL);
INSERT INTO "service_nonce" VALUES('Inference_1','912406f7e9dbd0a6',NULL);
INSERT INTO "service_nonce" VALUES('Inference_1','76a09286002a4da2',NULL);
INSERT INTO "service_nonce" VALUES('Frontend_1','e3d1ac541065866f',NULL);
INSERT INTO "service_nonce" VALUES('Frontend_1','c20184b2119f463c',NULL);
INSERT INTO "service_nonce" VALUES('User_1','c922cc2c223f61d7',NULL);
CREATE TABLE service_nonce_end(ends_at DOUBLE PRECISION NOT NULL);
INSERT INTO "service_nonce_end" VALUES(1.79546422728629541396e+09);
CREATE TABLE service_schema(version BIGINT NOT NULL);
INSERT INTO "service_schema" VALUES(16);
CREATE TABLE service_server(
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    machine TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE service_session(
    cookie TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    csrf TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE service_tree(number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, title TEXT NOT NULL);
CREATE TABLE service_tree_right(tree BIGINT NOT NULL, who TEXT NOT NULL, PRIMARY KEY(tree, who));
CREATE TABLE service_use(name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);
INSERT INTO "service_use" VALUES('User_1',1.79546428729344153402e+09);
INSERT INTO "service_use" VALUES('Inference_1',1.79546428730288672439e+09);
INSERT INTO "service_use" VALUES('Frontend_1',1.79546428734217405325e+09);
CREATE TABLE service_user(
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    secret TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL
);
INSERT INTO "service_user" VALUES('Frontend_1','frontend','ffffffffffffffffffffffff',1.79546428719790363308e+09);
INSERT INTO "service_user" VALUES('Inference_1','engine','eeeeeeeeeeeeeeeeeeeeeeee',1.79546428719831609732e+09);
INSERT INTO "service_user" VALUES('Inference_2','engine','gggggggggggggggggggggggg',1.7954642871984918118e+09);
INSERT INTO "service_user" VALUES('User_1','user','uuuuuuuuuuuuuuuuuuuuuuuu',1.7954642872000217438e+09);
INSERT INTO "service_user" VALUES('User_2','user','vvvvvvvvvvvvvvvvvvvvvvvv',1.79546428720021700861e+09);
INSERT INTO "service_user" VALUES('Admin_1','admin','aaaaaaaaaaaaaaaaaaaaaaaa',1.79546428720035529131e+09);
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
, title TEXT, trees BIGINT NOT NULL DEFAULT 1);
INSERT INTO "topic" VALUES('lamps','User_1',1.79546428729478955272e+09,1,NULL,NULL,NULL,NULL,1.79546428730307507516e+09,'User_1',NULL,1);
INSERT INTO "topic" VALUES('pays','User_1',1.79546428733546209336e+09,1,1.0e+18,NULL,'dJWkJ8Znbq49e8UR',1.0e+18,1.79546428733770108221e+09,'User_1',NULL,1);
INSERT INTO "topic" VALUES('stopped','John_Doe',1.79546428734234619134e+09,1,NULL,NULL,NULL,NULL,NULL,'John_Doe','Where the lamps are',1);
INSERT INTO "topic" VALUES('open','User_1',1.79546428734640312191e+09,1,1.79546428734640312191e+09,NULL,NULL,NULL,NULL,'User_1',NULL,1);
CREATE TABLE tree_file(digest TEXT NOT NULL, part BIGINT NOT NULL, data BLOB NOT NULL, PRIMARY KEY(digest, part));
CREATE TABLE tree_memory(
    what TEXT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    body TEXT,
    engine TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY(what, id)
);
CREATE TABLE tree_state(
    one BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    publisher TEXT,
    publisher_until DOUBLE PRECISION NOT NULL,
    token BIGINT NOT NULL
);
CREATE TABLE tree_version(
    version BIGINT PRIMARY KEY,
    size BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    mark TEXT NOT NULL,
    digest TEXT NOT NULL,
    files TEXT NOT NULL
);
CREATE TABLE turn(asker TEXT PRIMARY KEY, number BIGINT, asked BIGINT NOT NULL);
INSERT INTO "turn" VALUES('User_1',1,3);
INSERT INTO "turn" VALUES('John_Doe',NULL,2);
CREATE INDEX node_parent ON node(parent, position);
CREATE INDEX node_home ON node(home) WHERE home IS NOT NULL;
CREATE INDEX override_parent ON override(parent, position) WHERE parent IS NOT NULL;
CREATE INDEX override_home ON override(home) WHERE home IS NOT NULL;
CREATE INDEX link_target ON link(target, kind);
CREATE INDEX file_digest ON file(digest);
CREATE INDEX run_open ON run(machine, number) WHERE ended IS NULL OR ended = 'waiting';
CREATE INDEX mail_run ON mail(run);
CREATE INDEX item_changed ON item(board, changed);
CREATE INDEX item_section ON item(board, section, removed, number, pinned, tokens);
CREATE INDEX history_touch_number ON history_touch(number);
CREATE INDEX service_key_name ON service_key(name);
CREATE INDEX service_nonce_ends ON service_nonce(ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX service_session_name ON service_session(name);
CREATE INDEX topic_owner ON topic(owner, made_at);
CREATE INDEX topic_open ON topic(asker, ready_at, id) WHERE lease IS NULL AND ready_at IS NOT NULL;
CREATE INDEX topic_held ON topic(asker) WHERE engine IS NOT NULL;
CREATE INDEX topic_until ON topic(ready_at) WHERE engine IS NOT NULL;
CREATE INDEX turn_number ON turn(number, asker) WHERE number IS NOT NULL;
CREATE INDEX query_answered ON query(answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX query_unsettled ON query(status, at) WHERE status IN ('Open', 'Pending', 'Failed', 'Waiting');
CREATE INDEX progress_query ON progress(topic, seq, number);
CREATE INDEX lookup_open ON lookup(number) WHERE matches IS NULL;
CREATE INDEX lookup_fingerprint ON lookup(fingerprint);
CREATE INDEX lookup_wish_lookup ON lookup_wish(lookup);
CREATE INDEX chat_topic ON chat(topic);
CREATE UNIQUE INDEX tree_memory_number ON tree_memory(number);
CREATE INDEX service_tree_right_who ON service_tree_right(who);
CREATE INDEX service_group_member ON service_group(member);
CREATE INDEX recommendation_withdraws ON recommendation(withdraws) WHERE withdraws IS NOT NULL;
CREATE INDEX recommendation_topic ON recommendation(topic, number);
CREATE INDEX recommendation_by ON recommendation(on_behalf_of, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('service_identity',1);
INSERT INTO "sqlite_sequence" VALUES('progress',3);
INSERT INTO "sqlite_sequence" VALUES('recommendation',1);
INSERT INTO "sqlite_sequence" VALUES('lookup',1);
COMMIT;
PRAGMA application_id=1836348005;
PRAGMA user_version=9;
