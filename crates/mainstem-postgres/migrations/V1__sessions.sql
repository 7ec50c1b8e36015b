-- What any program has to know before it reads anything else.
CREATE TABLE about (
    name text PRIMARY KEY,
    value text NOT NULL
);
-- The oldest schema whose programs can work with this one.
INSERT INTO about VALUES ('compatible from', '1');

-- The processes that share the database. A node is alive until its lease ends; time is the database's.
CREATE TABLE nodes (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    program text NOT NULL,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    -- An operator has asked it to stop.
    is_draining boolean NOT NULL DEFAULT false
);

-- `node` writes the session while it is alive; `epoch` rises with each writer and fences the ones before.
CREATE TABLE sessions (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    node bigint,
    epoch bigint NOT NULL DEFAULT 0,
    first bigint NOT NULL DEFAULT 1,
    last bigint NOT NULL DEFAULT 0,
    streams bigint NOT NULL DEFAULT 0,
    runs bigint NOT NULL DEFAULT 0,
    run text COLLATE "C",
    created_at bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL DEFAULT 0,
    begun_at bigint NOT NULL DEFAULT 0,
    tenant text COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (CASE WHEN position('/' in name) > 0 THEN split_part(name, '/', 1) ELSE '' END) STORED
) WITH (fillfactor = 50);
-- No index has a column that changes with each commit: PostgreSQL then updates the row in its page.
CREATE INDEX sessions_listed ON sessions (tenant, begun_at, name);
CREATE INDEX sessions_with_run ON sessions (no) WHERE run IS NOT NULL;
CREATE INDEX sessions_of_node ON sessions (node) WHERE node IS NOT NULL;

CREATE TABLE events (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    event text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, seq)
) PARTITION BY HASH (session);
CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE events_1 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE events_3 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE events_4 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE events_5 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE events_6 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE events_7 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 7);

CREATE TABLE runs (
    run text COLLATE "C" PRIMARY KEY,
    session bigint NOT NULL,
    first bigint NOT NULL
);
CREATE INDEX runs_of_session ON runs (session);

CREATE TABLE claims (
    key text COLLATE "C" PRIMARY KEY,
    digest text NOT NULL,
    session text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX claims_by_age ON claims (at);
CREATE INDEX claims_of_session ON claims (session);

CREATE TABLE checkpoints (
    session bigint PRIMARY KEY,
    seq bigint NOT NULL,
    state text NOT NULL
);

-- The secret of a link is stored nowhere: the id is made of a digest of it.
CREATE TABLE links (
    id text COLLATE "C" PRIMARY KEY,
    session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    through bigint
);
CREATE INDEX links_of_session ON links (session);
CREATE INDEX links_by_end ON links (expires_at);

-- Runs that wait until their session is free.
CREATE TABLE queued_runs (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL UNIQUE,
    session text COLLATE "C" NOT NULL,
    request text NOT NULL
);
CREATE INDEX queued_runs_of_session ON queued_runs (session);

-- Requests to the node that has a session open, and their answers. They are of no use after a crash.
-- Their numbers are: a number must not come again, or the answer to one would go to another's asker.
CREATE SEQUENCE relayed_ids;
CREATE UNLOGGED TABLE relayed (
    id bigint PRIMARY KEY DEFAULT nextval('mainstem.relayed_ids'),
    asker bigint NOT NULL,
    owner bigint NOT NULL,
    request bytea NOT NULL,
    is_taken boolean NOT NULL DEFAULT false,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX relayed_to ON relayed (owner, id) WHERE NOT is_taken;
CREATE UNLOGGED TABLE relayed_parts (
    request bigint NOT NULL REFERENCES relayed ON DELETE CASCADE,
    no bigint NOT NULL,
    part bytea,
    PRIMARY KEY (request, no)
);

-- Background tasks. The columns beside `record` are those of it that are searched.
CREATE TABLE tasks (
    id text COLLATE "C" PRIMARY KEY,
    root text COLLATE "C" NOT NULL,
    parent text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    record text NOT NULL
);
CREATE INDEX tasks_of_root ON tasks (root);
CREATE INDEX tasks_of_parent ON tasks (parent);

-- Who runs them. `until` is by the clock of the node; `lease_until` is by the database's.
CREATE TABLE executors (
    id text COLLATE "C" PRIMARY KEY,
    node bigint NOT NULL,
    until bigint NOT NULL,
    lease_until timestamptz NOT NULL
);

-- Runs at a time, or again and again. The columns beside `record` are those of it that are searched.
CREATE TABLE jobs (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C",
    priority smallint NOT NULL,
    due_at bigint NOT NULL,
    status text NOT NULL,
    -- Of an active job: it is active while the node is alive.
    node bigint,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    record text NOT NULL
);
CREATE INDEX jobs_waiting ON jobs (tenant, priority DESC, due_at) WHERE status = 'waiting';
CREATE INDEX jobs_listed ON jobs (tenant, due_at, id);
CREATE INDEX jobs_due ON jobs (due_at) WHERE status = 'waiting';
CREATE INDEX jobs_of_tenant ON jobs (tenant) WHERE status IN ('waiting', 'active');
CREATE INDEX jobs_active ON jobs (node) WHERE status = 'active';
CREATE INDEX jobs_of_session ON jobs (session) WHERE status IN ('waiting', 'active');
CREATE INDEX jobs_over ON jobs (changed_at) WHERE status IN ('ended', 'cancelled');
