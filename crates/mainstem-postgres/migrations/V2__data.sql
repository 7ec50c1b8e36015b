-- Data beside the events of sessions. Programs before it can't read a session with data, and leave
-- the data of a session that they delete.
CREATE TABLE data (
    session text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    bytes bytea NOT NULL,
    -- When it was stored, if its session had not begun.
    waits_since timestamptz,
    PRIMARY KEY (session, id)
);
CREATE INDEX data_that_waits ON data (waits_since) WHERE waits_since IS NOT NULL;
-- It is compressed already, as pictures and sounds are.
ALTER TABLE data ALTER COLUMN bytes SET STORAGE EXTERNAL;
