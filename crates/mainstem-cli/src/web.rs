//! A session or a record on the page: `watch --web` opens it in a browser, `sessions export --html`
//! writes it.

use std::{
    io::{BufWriter, Write, stdout},
    sync::Arc,
};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt};
use mainstem::api::AnySession;
use mainstem_server::PageDocument;

use crate::{
    data,
    exit::{Exit, Fault, OrExit},
    host::advised,
    print::print,
    progress,
    replay::source::Source,
    terminal::Terminal,
};

/// Returns what is recorded of a session.
pub(crate) fn stored(session: Arc<dyn AnySession>) -> Source {
    data::recorded(session).map_err(advised).boxed_local()
}

/// Writes recorded events as a document that shows them on the page.
///
/// # Errors
/// The record has no events, the events can't be read, or the document can't be written.
pub(crate) async fn write<W: Write>(mut events: Source, out: W) -> anyhow::Result<W> {
    let first = events.next().await.context("the record has no events")??;
    let mut document = PageDocument::open(out)?;
    document.event(&first)?;
    while let Some(event) = events.next().await {
        document.event(&event?)?;
    }
    Ok(document.close()?)
}

/// Writes such a document to stdout.
pub(crate) async fn print_document(events: Source) -> Result<(), Fault> {
    match write(events, BufWriter::new(stdout().lock())).await {
        // The reader of the pipe has read enough.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        written => written.map(drop).or_exit(Exit::Failed),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Opens recorded events in a browser, from a file that only this user can read.
pub(crate) async fn open_record(title: &str, events: Source, terminal: Terminal) -> Result<Exit, Fault> {
    let name: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let path = async {
        let file =
            tempfile::Builder::new().prefix(&format!("mainstem-{name}-")).suffix(".html").tempfile()?;
        let file = write(events, BufWriter::new(file)).await?.into_inner().context("writing the document")?;
        anyhow::Ok(file.keep()?.1)
    };
    let path = path.await.or_exit(Exit::Failed)?;
    open(&path.display().to_string(), terminal)
}

/// Prints an address or a path, and opens it in a browser.
pub(crate) fn open(what: &str, terminal: Terminal) -> Result<Exit, Fault> {
    print(&format!("{what}\n"))?;
    if let Err(error) = open::that_detached(what) {
        progress::say(&format!("no browser could be started ({error}); open it by hand"), terminal);
    }
    Ok(Exit::Reply)
}
