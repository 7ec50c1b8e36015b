//! The format of the file, and how it is created, opened and checked.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::JournalError;

/// The application id that marks a database as a journal: "MSTJ".
const APPLICATION: i64 = 0x4d53_544a;

/// The format of a file with data beside its events; a file without such data has format 1, which
/// older programs read, too. It rises with each change that an older program could not read.
pub(super) const FORMAT: i64 = 2;

pub(super) const PROGRAM: &str = concat!("mainstem ", env!("CARGO_PKG_VERSION"));

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// The size to which the log beside the file is truncated.
const LOG_BYTES: i64 = 64 << 20;

const TABLES: &str = "
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
";

/// Tables that the first program did not have and that it ignores: places of runs, claims, and
/// checkpoints.
const LATER_TABLES: &str = "
    CREATE TABLE runs (run TEXT PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX runs_of ON runs (session);
    CREATE TABLE claims (
        key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        session TEXT NOT NULL,
        run TEXT NOT NULL,
        at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE checkpoints (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);
    INSERT OR IGNORE INTO runs
        SELECT event ->> '$.runId', session, seq FROM events
        WHERE event LIKE '{\"type\":\"AGENT_START\"%' AND json_valid(event)
            AND event ->> '$.runId' IS NOT NULL AND event ->> '$.source' IS NULL;
";

/// The table of jobs, which programs before them ignore.
const JOBS: &str = "
    CREATE TABLE IF NOT EXISTS jobs (
        id TEXT PRIMARY KEY,
        status TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        holder TEXT,
        until INTEGER,
        record TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (status, due_at);
";

/// The links of sessions. Programs before them leave a link when they delete its session. Row
/// numbers are not used again, so it is not a link of a later session.
const LINKS: &str = "
    CREATE TABLE IF NOT EXISTS links (
        id TEXT PRIMARY KEY,
        session INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        through INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS links_of ON links (session);
";

/// Runs that wait until their session is free. Programs before them leave those of a session that
/// they delete.
const QUEUED: &str = "
    CREATE TABLE IF NOT EXISTS queued_runs (
        place INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        request TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS queued_of ON queued_runs (session);
";

/// Data beside the events of sessions. Programs before them can't show it, and leave that of a
/// session that they delete.
const DATA: &str = "
    CREATE TABLE IF NOT EXISTS data (
        session TEXT NOT NULL,
        id TEXT NOT NULL,
        bytes BLOB NOT NULL,
        -- When it was stored, in microseconds, if its session had not begun.
        waits_since INTEGER,
        UNIQUE (session, id)
    );
    CREATE INDEX IF NOT EXISTS data_that_waits ON data (waits_since) WHERE waits_since IS NOT NULL;
";

/// States of fleets after some events. Programs before them leave those of a session that they
/// delete; row numbers are not used again.
const MOMENTS: &str = "
    CREATE TABLE IF NOT EXISTS moments (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        -- The first event of the session that was stored then: a program before this table that drops
        -- events leaves states that have them.
        first INTEGER NOT NULL,
        state TEXT NOT NULL,
        UNIQUE (session, seq)
    );
";

/// The columns of the list of sessions. Programs before them do not write `begun_at`: a session
/// that such a program goes on with keeps its place.
const LIST: &str = "
    ALTER TABLE sessions ADD COLUMN begun_at INTEGER NOT NULL DEFAULT 0 CHECK (begun_at >= 0);
    ALTER TABLE sessions ADD COLUMN tenant TEXT AS (iif(instr(name, '/'), substr(name, 1, instr(name, '/') - 1), ''));
    CREATE INDEX sessions_listed ON sessions (tenant, begun_at, name);
    UPDATE sessions SET begun_at = updated_at WHERE typeof(updated_at) = 'integer' AND updated_at > 0;
";

/// The index of the sessions with a run that has not ended.
const WITH_RUN: &str = "CREATE INDEX IF NOT EXISTS sessions_with_run ON sessions (id) WHERE run IS NOT NULL;";

/// Opens a file for writing, and creates what is missing.
pub(super) fn open(path: &Path, max_bytes: Option<u64>) -> Result<Connection, JournalError> {
    let verb = if path.exists() { "open" } else { "create" };
    create(path).map_err(JournalError::store(verb, path))?;
    let mut connection = open_again(path, None)?;
    prepare(&mut connection, max_bytes).map_err(full).map_err(JournalError::store("open", path))?;
    check(&connection, path)?;
    complete(&mut connection).map_err(JournalError::store("write", path))?;
    Ok(connection)
}

/// Says what SQLite calls an I/O error with a number.
fn full(error: rusqlite::Error) -> Box<dyn std::error::Error + Send + Sync> {
    let code = error.sqlite_error().map(|error| error.extended_code);
    match code {
        Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => {
            "there is no space for SQLite's files beside it; is the disk full?".into()
        }
        _ => error.into(),
    }
}

/// Opens a file that this process only reads.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, JournalError> {
    // SQLite's files are beside the one that a link leads to.
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = &*resolved;
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // If SQLite's log is absent, no process is writing the file. SQLite would create the log,
        // which this process may not do, unless it is told that the file does not change.
        let connection = match has_log(path) {
            true => Connection::open_with_flags(path, flags)?,
            false => Connection::open_with_flags(unchanging(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
        };
        connection.busy_timeout(BUSY)?;
        Ok::<_, rusqlite::Error>(connection)
    };
    let connection = open().map_err(JournalError::store("open", path))?;
    check(&connection, path)?;
    match is_readable(&connection).map_err(JournalError::store("read", path))? {
        true => Ok(connection),
        false => Err(JournalError::Older { path: path.to_owned() }),
    }
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.is_file() && log.len() > 0)
}

/// Returns the URI of a file that no process changes.
fn unchanging(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri + "?immutable=1"
}

fn check(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    match standing(connection).map_err(JournalError::store("read", path))? {
        Standing::Ours => Ok(()),
        Standing::Foreign => Err(JournalError::Foreign { path: path.to_owned() }),
        Standing::Newer { format, written_by } => {
            Err(JournalError::Newer { path: path.to_owned(), format, known: FORMAT, written_by })
        }
    }
}

/// Opens a file that exists.
pub(super) fn open_again(path: &Path, max_bytes: Option<u64>) -> Result<Connection, JournalError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        bound(&connection, max_bytes)?;
        Ok::<_, rusqlite::Error>(connection)
    };
    open().map_err(JournalError::store("open", path))
}

/// Bounds the size of the file for what this connection writes.
fn bound(connection: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    let Some(bytes) = max_bytes else { return Ok(()) };
    let pages = bytes as i64 / pragma(connection, "page_size")?;
    connection.query_row(&format!("PRAGMA max_page_count={pages}"), [], |_| Ok(()))
}

/// Creates a file with access for its owner alone: it has whole conversations.
fn create(path: &Path) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

/// Sets a connection up for writing, and the tables of an empty file, also while another process
/// does the same. Any other file stays as it is.
fn prepare(connection: &mut Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    if pragma(connection, "schema_version")? == 0 {
        connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if pragma(&change, "schema_version")? == 0 {
            change.execute_batch(TABLES)?;
            change.execute_batch(LATER_TABLES)?;
            change.execute_batch(JOBS)?;
            change.execute_batch(LINKS)?;
            change.execute_batch(LIST)?;
            change.execute_batch(WITH_RUN)?;
            change.pragma_update(None, "application_id", APPLICATION)?;
            change.pragma_update(None, "user_version", 1)?;
            change.execute("INSERT INTO about VALUES ('written by', ?1)", [PROGRAM])?;
        }
        change.commit()?;
    }
    bound(connection, max_bytes)?;
    connection.query_row(&format!("PRAGMA journal_size_limit={LOG_BYTES}"), [], |_| Ok(()))
}

pub(super) fn has(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";
    connection.query_row(sql, [table], |row| row.get(0))
}

/// Returns `true` if the file has all tables that a reader needs; it does without the states of
/// earlier moments.
fn is_readable(connection: &Connection) -> rusqlite::Result<bool> {
    let mut is_complete = true;
    const NAMES: [&str; 7] =
        ["runs", "jobs", "links", "queued_runs", "data", "sessions_listed", "sessions_with_run"];
    for name in NAMES {
        is_complete &= has(connection, name)?;
    }
    Ok(is_complete)
}

/// Returns `true` if the file has all tables.
fn is_complete(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(is_readable(connection)? && has(connection, "moments")?)
}

/// Adds the tables that an older program has not made, also while another process does the same.
fn complete(connection: &mut Connection) -> rusqlite::Result<()> {
    if is_complete(connection)? {
        return Ok(());
    }
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !has(&change, "runs")? {
        change.execute_batch(LATER_TABLES)?;
    }
    change.execute_batch(JOBS)?;
    change.execute_batch(LINKS)?;
    change.execute_batch(QUEUED)?;
    change.execute_batch(DATA)?;
    change.execute_batch(MOMENTS)?;
    if !has(&change, "sessions_listed")? {
        change.execute_batch(LIST)?;
    }
    change.execute_batch(WITH_RUN)?;
    change.commit()
}

enum Standing {
    Ours,
    Foreign,
    Newer { format: i64, written_by: String },
}

fn standing(connection: &Connection) -> rusqlite::Result<Standing> {
    if pragma(connection, "application_id")? != APPLICATION {
        return Ok(Standing::Foreign);
    }
    let format = pragma(connection, "user_version")?;
    if format <= FORMAT {
        return Ok(Standing::Ours);
    }
    let written_by = "SELECT value FROM about WHERE name = 'written by'";
    let written_by = connection.query_row(written_by, [], |row| row.get(0));
    Ok(Standing::Newer { format, written_by: written_by.unwrap_or_else(|_| "a later version".to_owned()) })
}
