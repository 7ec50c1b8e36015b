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

/// Checks a journal, by default that of the user. Creates none.
pub(super) fn check(at: Option<&JournalAt>, runtime: &Runtime) -> Finding {
    match at {
        Some(journal @ JournalAt::Database(url)) => database(url, &journal.to_string()),
        Some(JournalAt::File(path)) => file(path, false, runtime),
        None => match store::default_path() {
            Ok(path) => file(&path, true, runtime),
            Err(error) => Finding::wrong(format!("journal: {error}"), "name a file by `--journal FILE`"),
        },
    }
}

/// `shown` is the URL without its password.
fn database(url: &str, shown: &str) -> Finding {
    match store::look(url) {
        Ok(Looked { place, alive, may_serve }) => {
            let text = format!("journal: {place}, {} alive", counted(alive, "node"));
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

fn file(path: &Path, is_users: bool, runtime: &Runtime) -> Finding {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
    match path.try_exists() {
        Ok(true) => {}
        // That of the user has its folder made, too.
        Ok(false) if folder.is_none() || is_users => {
            return Finding::absent(format!("journal: there is no file {shown} yet; a session creates it"));
        }
        Ok(false) => {
            return Finding::wrong(
                format!("journal: there is no folder for {shown}"),
                "create it, or name another file by `--journal FILE`",
            );
        }
        Err(error) => {
            let fix = "name another file by `--journal FILE`, or permit reading it";
            return Finding::wrong(format!("journal: {shown}: {error}"), fix);
        }
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
