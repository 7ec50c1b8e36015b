//! Whether the journal can be used: a file, or a database.

use std::path::Path;

use tokio::runtime::Runtime;

use super::Finding;
use crate::{
    args::JournalAt,
    exit::in_one_line,
    print::counted,
    store::{self, Access, Looked},
};

/// Checks a journal, by default that of the user. Creates nothing.
pub(super) fn check(at: Option<&JournalAt>, runtime: &Runtime) -> Finding {
    match at {
        Some(JournalAt::Database(url)) => database(url, at.map(ToString::to_string).unwrap_or_default()),
        Some(JournalAt::File(path)) => file(path, runtime),
        None => match store::default_path() {
            Ok(path) => file(&path, runtime),
            Err(error) => Finding::wrong(format!("journal: {error}"), "name a file by `--journal FILE`"),
        },
    }
}

fn database(url: &str, shown: String) -> Finding {
    match store::look(url) {
        Ok(Looked { alive, may_serve }) => {
            let text = format!("journal: {shown}, {} alive", counted(alive, "node"));
            match may_serve {
                true => Finding::well(text),
                false => Finding::absent(format!("{text}; this role may read it, and not serve")),
            }
        }
        Err(error) => Finding::wrong(
            format!("journal: {}", in_one_line(&error)),
            format!(
                "correct the URL, or the password in PGPASSWORD or the file of PGPASSWORD_FILE;\n\
                 `mainstem migrate --journal {shown}` creates tables, and changes those of an earlier version"
            ),
        ),
    }
}

fn file(path: &Path, runtime: &Runtime) -> Finding {
    let shown = path.display();
    if !path.exists() {
        return Finding::absent(format!("journal: there is no file {shown} yet; a session creates it"));
    }
    let at = JournalAt::File(path.to_owned());
    let sessions = store::open_for(Access::Read, Some(&at))
        .and_then(|store| Ok(runtime.block_on(store.journal.sessions())?.len()));
    match sessions {
        Ok(sessions) => Finding::well(format!("journal: {shown}, {}", counted(sessions, "session"))),
        Err(error) => Finding::wrong(
            format!("journal: {}", in_one_line(&error)),
            "name another file by `--journal FILE`, or restore this one",
        ),
    }
}
