-- A journal as the first version wrote it. Never to be changed: it must be read for ever.
PRAGMA application_id = 1297306698;
PRAGMA user_version = 1;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO about VALUES ('written by', 'mainstem 0.1.0');
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,
    first INTEGER NOT NULL DEFAULT 1,
    last INTEGER NOT NULL DEFAULT 0,
    streams INTEGER NOT NULL DEFAULT 0,
    runs INTEGER NOT NULL DEFAULT 0,
    run TEXT,
    created_at INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
INSERT INTO sessions VALUES (1, 's', 1, 1, 4, 0, 1, 'r', 1795341600000000, 1795341600000003);
INSERT INTO events VALUES (1, 1, '{"type":"AGENT_START","seq":1,"id":"s.1","sessionId":"s","runId":"r","createdAt":"2026-11-22T10:00:00.000000Z","replyId":"y","name":"main","role":"assistant","input":[{"role":"user","content":[{"type":"text","text":"go"}]}]}');
INSERT INTO events VALUES (1, 2, '{"type":"TEXT_BLOCK_DELTA","seq":2,"id":"s.2","sessionId":"s","runId":"r","createdAt":"2026-11-22T10:00:00.000001Z","replyId":"y","blockId":"b","delta":"Hi"}');
INSERT INTO events VALUES (1, 3, '{"type":"FROM_A_LATER_VERSION","seq":3,"id":"s.3","sessionId":"s","runId":"r","createdAt":"2026-11-22T10:00:00.000002Z","replyId":"y","what":{"ever":1}}');
INSERT INTO events VALUES (1, 4, '{"type":"TEXT_BLOCK_DELTA","seq":4,"id":"s.4","sessionId":"s","runId":"r","createdAt":"2026-11-22T10:00:00.000003Z","replyId":"y","blockId":"b","delta":"there"}');
