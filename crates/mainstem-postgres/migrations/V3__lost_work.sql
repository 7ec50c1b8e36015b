-- The tasks that another executor can continue; each node looks for those whose executor has ended.
-- A quote within a text is escaped, so that no text of a task matches.
CREATE INDEX tasks_resumable ON tasks (created_at, id) WHERE record LIKE '%"isResumable":true%'
    AND record NOT LIKE '%"status":"completed"%' AND record NOT LIKE '%"status":"failed"%'
    AND record NOT LIKE '%"status":"cancelled"%';

-- The run of a session that was cut off when its node ended: from the next opening of the session
-- on, until a run has begun since, or its turn is not to be resumed. This comes last, because it
-- locks the sessions.
ALTER TABLE sessions ADD COLUMN cut text COLLATE "C";
CREATE INDEX sessions_with_cut ON sessions (no) WHERE cut IS NOT NULL;
