//! Lists, tables and values on stdout.

use std::io::{self, ErrorKind, Write};

use crate::{
    exit::{Exit, Fault, OrExit},
    sanitize, table,
    terminal::Terminal,
};

/// Writes text to stdout, without control sequences. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    write(&sanitize::clean(text))
}

/// Writes text to stdout that has styles, and foreign text without control sequences.
pub(crate) fn print_shown(text: &str) -> Result<(), Fault> {
    write(text)
}

/// Writes a reply to stdout, as the [terminal](Terminal::reply) shows it.
pub(crate) fn print_reply(text: &str, terminal: Terminal) -> Result<(), Fault> {
    write(&terminal.reply(text))
}

/// Writes a table to stdout, or a note to stderr if it has no rows, such as `no sessions`.
pub(crate) fn print_table<const N: usize>(
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    what: &str,
) -> Result<(), Fault> {
    let mut rows = rows.peekable();
    match rows.peek() {
        Some(_) => print(&table::text(heads, rows)),
        None => {
            note_empty(what);
            Ok(())
        }
    }
}

/// Writes to stderr that a list is empty.
pub(crate) fn note_empty(what: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "no {what}");
}

/// Writes a value to stdout.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Fault> {
    print_json(&serde_json::to_string_pretty(value).or_exit(Exit::Failed)?)
}

/// Writes a line or lines of JSON to stdout, with control characters escaped.
pub(crate) fn print_json(json: &str) -> Result<(), Fault> {
    write(&(sanitize::escape_json(json) + "\n"))
}

fn write(text: &str) -> Result<(), Fault> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).or_exit(Exit::Failed),
        _ => Ok(()),
    }
}

/// Returns a count with its noun: `1 error`, `2 errors`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
