//! What a line of a chat means: a command, or a message. Pure.

use mainstem::spec::closest;

/// The commands: what is typed, and what it does.
pub(super) const COMMANDS: [(&str, &str); 12] = [
    ("/now", "during a turn, tell the agent TEXT: it reads it before its next step"),
    ("/agents", "list the children"),
    ("/tasks", "list background tasks"),
    ("/attach", "send FILE, an image, a PDF, audio or text, with the next line"),
    ("/model", "show the model, or change it to NAME, or `default`"),
    ("/plan", "plan first, without changes, from the next line on; `/plan off` ends it"),
    ("/compact", "shorten the conversation"),
    ("/cost", "show what the session has used"),
    ("/resume", "resume a turn without an answer"),
    ("/help", "show these commands"),
    ("/quit", "end the chat, as Ctrl-D does"),
    ("/exit", "end the chat, too"),
];

/// A line of a chat.
#[derive(Debug, PartialEq)]
pub(super) enum Command<'a> {
    Nothing,
    /// A message for the running turn.
    Now(&'a str),
    Agents,
    Tasks,
    /// A file; empty for none.
    Attach(&'a str),
    /// The new model; empty to show the present one.
    Model(&'a str),
    Plan(bool),
    Compact,
    Cost,
    Resume,
    Help,
    Quit,
    /// Not a command; with what to type instead.
    Unknown(String),
    Say(&'a str),
}

impl<'a> Command<'a> {
    /// Parses a line. One that begins with a path, such as `/etc/hosts is wrong`, is a message.
    pub(super) fn of(line: &'a str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => Self::Nothing,
            ("/now", text) if !text.is_empty() => Self::Now(text),
            ("/agents", "") => Self::Agents,
            ("/tasks", "") => Self::Tasks,
            ("/attach", file) => Self::Attach(file),
            ("/model", name) => Self::Model(name),
            ("/plan", "" | "on") => Self::Plan(true),
            ("/plan", "off") => Self::Plan(false),
            ("/compact", "") => Self::Compact,
            ("/cost", "") => Self::Cost,
            ("/resume", "") => Self::Resume,
            ("/help", "") => Self::Help,
            ("/quit" | "/exit", "") => Self::Quit,
            (word, _) if word.starts_with('/') && !word[1..].contains('/') => Self::Unknown(unknown(word)),
            _ => Self::Say(line),
        }
    }
}

/// Returns what is wrong with a command.
fn unknown(word: &str) -> String {
    match word {
        "/plan" => return "write /plan, or /plan off".to_owned(),
        "/now" => return "write /now TEXT".to_owned(),
        _ => {}
    }
    if COMMANDS.iter().any(|(name, _)| *name == word) {
        return format!("{word} takes nothing behind it; /help lists the commands");
    }
    let near = closest(word, COMMANDS.iter().map(|(name, _)| *name));
    let near = near.map_or_else(String::new, |near| format!(" did you mean {near}?"));
    format!("unknown command {word};{near} /help lists the commands")
}

/// Returns the help.
pub(super) fn help() -> String {
    let commands = COMMANDS.map(|(name, does)| format!("  {name:<10}{does}"));
    format!("{KEYS}\n{}", commands.join("\n"))
}

const KEYS: &str = "\
A line is a turn; Esc or Ctrl-C cancels it. What is typed meanwhile follows it, and `/now TEXT` enters
it. Alt-Enter begins another line of the same turn. `@FILE` in a line sends the file with it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_means() {
        let check = |line: &str, expected: Command<'_>| assert_eq!(Command::of(line), expected, "{line:?}");
        check("", Command::Nothing);
        check("  ", Command::Nothing);
        check(" Hello there ", Command::Say("Hello there"));
        check("/now  use tabs, please", Command::Now("use tabs, please"));
        check("/agents", Command::Agents);
        check("/tasks ", Command::Tasks);
        check("/attach  my file.png", Command::Attach("my file.png"));
        check("/attach", Command::Attach(""));
        check("/model", Command::Model(""));
        check("/model openai:gpt-4o", Command::Model("openai:gpt-4o"));
        check("/plan", Command::Plan(true));
        check("/plan off", Command::Plan(false));
        check("/compact", Command::Compact);
        check("/cost", Command::Cost);
        check("/exit", Command::Quit);
        check("/etc/hosts is wrong", Command::Say("/etc/hosts is wrong"));
        let unknown = |text: &str| Command::Unknown(text.to_owned());
        check("/agent", unknown("unknown command /agent; did you mean /agents? /help lists the commands"));
        check("/zzz", unknown("unknown command /zzz; /help lists the commands"));
        check("/now", unknown("write /now TEXT"));
        check("/plan maybe", unknown("write /plan, or /plan off"));
    }
}
