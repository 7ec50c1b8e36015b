//! The command with which a session goes on, as a person can type it.

use std::borrow::Cow;

use mainstem::message::SessionId;

use crate::{args::JournalAt, config::Settings};

/// What a command was given that a further one about its session needs, too.
pub(crate) struct Given<'a> {
    pub(crate) agent: Option<&'a str>,
    pub(crate) settings: &'a Settings,
    pub(crate) server: Option<&'a str>,
    pub(crate) journal: Option<&'a JournalAt>,
}

impl Given<'_> {
    /// Returns a command about a session, with the flags that were given.
    pub(crate) fn command(&self, command: &str, session: &SessionId, more: &str) -> String {
        let Self { agent, settings, server, journal } = self;
        let model = settings.model.as_ref().map(|model| model.value.clone());
        let folder = settings.workspace.as_ref().map(|folder| folder.value.display().to_string());
        let flags = [
            ("-a", agent.map(str::to_owned)),
            ("-m", model),
            ("-w", folder),
            ("--server", server.map(str::to_owned)),
            ("--journal", journal.map(ToString::to_string)),
        ];
        let flags =
            flags.into_iter().filter_map(|(flag, value)| Some(format!(" {flag} {}", quoted(&value?))));
        format!("mainstem {command} --session {session}{more}{}", flags.collect::<String>())
    }
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("openai:gpt-5.2", "openai:gpt-5.2");
        check("my j.db", "'my j.db'");
        check("it's", r"'it'\''s'");
        check("", "''");
        check("$HOME;rm", "'$HOME;rm'");
    }
}
