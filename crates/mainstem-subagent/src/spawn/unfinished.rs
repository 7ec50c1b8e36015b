//! What a turn that failed has come to, so that its parent loses no work. Pure.

use std::{fmt, sync::Arc};

use mainstem_message::{Message, Role};
use mainstem_react::artifact_path;

/// What a turn has done and said before it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// The tools whose calls have results, each with their number, in the order of the first.
    calls: Vec<(String, usize)>,
    /// The paths of its long results, the latest [`MOST_ARTIFACTS`].
    artifacts: Vec<String>,
    /// The last text that it has said.
    text: String,
}

/// The most artifacts that are named.
const MOST_ARTIFACTS: usize = 20;

impl Unfinished {
    /// Returns what a turn with these messages has come to; `None` if it has done and said nothing.
    pub(crate) fn of(messages: &[Arc<Message>]) -> Option<Self> {
        let (mut calls, mut artifacts): (Vec<(String, usize)>, Vec<_>) = Default::default();
        for result in messages.iter().flat_map(|message| message.tool_results()) {
            artifacts.extend(artifact_path(result).map(str::to_owned));
            match calls.iter_mut().find(|(name, _)| *name == result.name) {
                Some((_, count)) => *count += 1,
                None => calls.push((result.name.clone(), 1)),
            }
        }
        artifacts.drain(..artifacts.len().saturating_sub(MOST_ARTIFACTS));
        let answers = messages.iter().filter(|message| message.role == Role::Assistant);
        let text = answers.map(|answer| answer.text().trim().to_owned()).rfind(|text| !text.is_empty());
        let unfinished = Self { calls, artifacts, text: text.unwrap_or_default() };
        (!unfinished.calls.is_empty() || !unfinished.text.is_empty()).then_some(unfinished)
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, artifacts, text } = self;
        let all: usize = calls.iter().map(|(_, count)| count).sum();
        if all > 0 {
            let calls: Vec<_> = calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
            write!(f, "done: {all} tool call{} ({})", if all == 1 { "" } else { "s" }, calls.join(", "))?;
        }
        if !artifacts.is_empty() {
            write!(f, "\nartifacts of its workspace: {}", artifacts.join(", "))?;
        }
        if !text.is_empty() {
            write!(f, "{}partial_reply:\n{text}", if all > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Messages in, text for the parent out.

    use mainstem_message::{ContentBlock, ToolResult, ToolState};

    use super::*;

    fn result(name: &str) -> Arc<Message> {
        result_with(name, "found")
    }

    fn result_with(name: &str, text: &str) -> Arc<Message> {
        let (tool_call_id, content) = ("call".into(), vec![ContentBlock::text(text)]);
        let result = ToolResult { tool_call_id, name: name.to_owned(), content, state: ToolState::Success };
        Arc::new(Message::new(Role::Tool, vec![ContentBlock::ToolResult(result)]))
    }

    fn said(text: &str) -> Arc<Message> {
        Arc::new(Message::assistant(text))
    }

    #[track_caller]
    fn check(messages: &[Arc<Message>], expected: &str) {
        let shown = Unfinished::of(messages).map(|unfinished| unfinished.to_string());
        assert_eq!(shown.unwrap_or_default(), expected);
    }

    #[test]
    fn what_was_done_and_said_last_is_told() {
        let task = || Arc::new(Message::user("dig"));
        check(&[], "");
        check(&[task()], "");
        check(&[task(), said(" ")], "");
        check(&[task(), said("I dig"), said("")], "partial_reply:\nI dig");
        check(&[task(), result("dig")], "done: 1 tool call (dig 1)");
        let all = [task(), said("First."), result("dig"), result("look"), result("dig"), said("Gold, I th")];
        check(&all, "done: 3 tool calls (dig 2, look 1)\npartial_reply:\nGold, I th");
        let stored = |path: &str| {
            let note = "[The result is too long: 90000 bytes in 9 lines. All of it is in the file ";
            result_with("dig", &format!("{note}\"{path}\"; what is left out"))
        };
        let expected = "done: 2 tool calls (dig 2)\nartifacts of its workspace: artifacts/a.txt, artifacts/b.txt\npartial_reply:\nGold";
        check(&[task(), stored("artifacts/a.txt"), stored("artifacts/b.txt"), said("Gold")], expected);
    }
}
