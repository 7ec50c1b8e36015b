-- States of fleets after some of the events of a session, so that an earlier moment is shown without
-- the events before it.
CREATE TABLE moments (
    session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    -- The first event of the session that was stored then: a node of the version before that drops
    -- events leaves states that have them.
    first bigint NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (session, seq)
);
