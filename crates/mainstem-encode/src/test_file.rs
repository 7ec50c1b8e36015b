//! A recorded session as a test in Rust, which `mainstem_testing::Recording` runs.
//! `ui/src/test.ts` writes the same file.

use std::io::{self, Write};

use mainstem_event::AgentEvent;
use mainstem_message::SessionId;

/// Writes a test that runs a recorded session again, without models, tools and people, and checks
/// that each agent does what it did.
///
/// The file has the record in itself. The [`open`](Self::open) file takes
/// [`event`](Self::event)s, all of the session in their order; [`close`](Self::close) completes it.
///
/// ```
/// # fn example(events: &[mainstem_event::AgentEvent]) -> std::io::Result<()> {
/// use mainstem_encode::TestFile;
///
/// let file = std::fs::File::create("tests/a_session.rs")?;
/// let mut test = TestFile::open(file, events[0].session_id())?;
/// for event in events {
///     test.event(event)?;
/// }
/// test.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestFile<W>(W);

impl<W: Write> TestFile<W> {
    /// Begins the test of a session.
    ///
    /// # Errors
    /// It can't be written.
    pub fn open(mut out: W, session: &SessionId) -> io::Result<Self> {
        write!(
            out,
            "//! A recorded session: the agents do again what they did. Models, tools and people are played from
//! the record.
//!
//! Dev-dependencies: `mainstem-testing` with the feature `recording`; `tokio` with the features
//! `macros`, `rt` and `test-util`.

use mainstem_testing::Recording;

#[tokio::test(start_paused = true)]
async fn {}() {{
    let recording = Recording::parse(RECORD).unwrap();
    // The recorded agents and tools. To test your own, build a harness with `recording.model()` and
    // `recording.ids()`.
    let harness = recording.harness().build().unwrap();
    recording.check(&harness).await;
}}

const RECORD: &str = r#\"
",
            name_of(session)
        )?;
        Ok(Self(out))
    }

    /// Writes the next event, with the declarations of agents that it has.
    ///
    /// # Errors
    /// It can't be written.
    pub fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        writeln!(self.0, "{}", escaped(&event.to_json()))
    }

    /// Completes the test; returns what it was written to.
    ///
    /// # Errors
    /// It can't be written.
    pub fn close(mut self) -> io::Result<W> {
        self.0.write_all(b"\"#;\n")?;
        self.0.flush()?;
        Ok(self.0)
    }
}

/// Returns the name of the test function.
fn name_of(session: &SessionId) -> String {
    let name = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    format!("session_{}", session.as_str().chars().map(name).collect::<String>())
}

/// Escapes what could end the literal, and what the compiler refuses in one. All of it can only be
/// in strings of the JSON.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut last = ' ';
    for c in json.chars() {
        match c {
            '#' if last == '"' => text.push_str("\\u0023"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
        last = c;
    }
    text
}

#[cfg(test)]
mod tests {
    //! The file as the compiler reads it.

    use mainstem_event::{EventKind, SessionLog};

    use super::*;

    #[test]
    fn the_record_is_a_literal_of_the_same_events() {
        let log = SessionLog::new("A-s.1".parse().unwrap());
        let value = serde_json::json!("#one\"# two \" # \u{202e}\u{2066} \"##");
        log.emit(EventKind::Custom { name: "#step".into(), value });
        let event = log.recent_from(1).try_next().unwrap();
        let mut file = TestFile::open(Vec::new(), event.session_id()).unwrap();
        file.event(&event).unwrap();
        let text = String::from_utf8(file.close().unwrap()).unwrap();
        assert!(text.contains("async fn session_a_s_1() {"), "{text}");
        let (_, literal) = text.split_once("r#\"\n").unwrap();
        let (record, rest) = literal.split_once("\"#").unwrap();
        assert_eq!(rest, ";\n");
        assert!(!record.contains(['\u{202e}', '\u{2066}']), "{record}");
        assert_eq!(serde_json::from_str::<AgentEvent>(record).unwrap(), event);
    }
}
