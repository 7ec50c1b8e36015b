//! Results that are too long for a conversation: stored as artifacts, and replaced by their
//! beginning and end.

use mainstem_message::{ContentBlock, ToolResult};
use mainstem_tool::{MAX_RESULT_BYTES, ToolError, ToolOutput};

use crate::RunContext;

/// How many bytes of a text are shown.
struct Excerpt {
    head: usize,
    tail: usize,
}

/// Enough to identify a text whose whole is stored.
const PREVIEW: Excerpt = Excerpt { head: 6 << 10, tail: 2 << 10 };

/// As much as fits with a note, for a text that is not stored.
const ALL_THERE_IS: Excerpt = Excerpt { head: 48 << 10, tail: 15 << 10 };

/// How the note of a long result begins.
const NOTE: &str = "[The result is too long: ";

/// What stands before the path of an artifact in the note.
const STORED: &str = "All of it is in the file ";

impl RunContext {
    /// Returns a result as it is if its text is at most [`MAX_RESULT_BYTES`]. Otherwise the run's
    /// [`Artifacts`](mainstem_tool::Artifacts) store the text, and its beginning and end take its
    /// place, with a note of its path and length; if it can't be stored, the text is cut, and the
    /// note says so. Data stays.
    ///
    /// The loop does this with the result of each call, whether a tool or a middleware gave it.
    pub async fn bounded(&self, output: ToolOutput) -> ToolOutput {
        let (content, state) = output.into_parts();
        // Boxed: few results are that long, and the future of each call would hold it.
        let content = match texts(&content).map(str::len).sum::<usize>() > MAX_RESULT_BYTES {
            true => Box::pin(self.put_aside(content)).await,
            false => content,
        };
        ToolOutput::new(content).with_state(state)
    }

    async fn put_aside(&self, mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
        let text = texts(&content).collect::<Vec<_>>().join("\n");
        let kept = match (self.artifacts(), self.call_id()) {
            (Some(artifacts), Some(call)) => Some(artifacts.store(&self.tool_context(call), &text).await),
            _ => None,
        };
        content.retain(|block| !matches!(block, ContentBlock::Text { .. }));
        content.insert(0, ContentBlock::text(preview(&text, kept)));
        content
    }
}

fn texts(content: &[ContentBlock]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

/// Returns the beginning and end of a text after a note.
fn preview(text: &str, kept: Option<Result<String, ToolError>>) -> String {
    let (bytes, lines) = (text.len(), text.lines().count());
    let Excerpt { head, tail } = if matches!(kept, Some(Ok(_))) { PREVIEW } else { ALL_THERE_IS };
    let (head, tail) = (beginning(text, head), ending(text, tail));
    let left_out = bytes - head.len() - tail.len();
    let is_whole = text[head.len()..].starts_with('\n');
    let next = head.matches('\n').count() + 1 + usize::from(is_whole);
    let rest = match kept {
        Some(Ok(path)) => {
            format!("{STORED}{path:?}; what is left out here begins in its line {next}.")
        }
        Some(Err(why)) => {
            format!("It could not be kept ({why}), so what is left out here is lost; ask for less at once.")
        }
        None => "What is left out here is not kept; ask for less at once.".to_owned(),
    };
    format!("{NOTE}{bytes} bytes in {lines} lines. {rest}]\n{head}\n[… {left_out} bytes left out …]\n{tail}")
}

/// Returns the path of the artifact that has the whole text of a result, relative to the agent's
/// workspace; `None` if the result was short enough for the conversation, or was not stored.
///
/// The path is read from the note in the result, which a tool can imitate: it names a file and
/// gives no right to it.
pub fn artifact_path(result: &ToolResult) -> Option<&str> {
    let note = texts(&result.content).next()?.strip_prefix(NOTE)?.lines().next()?;
    let (_, path) = note.split_once(STORED)?;
    path.strip_prefix('"')?.split_once('"').map(|(path, _)| path)
}

/// Returns at most so many bytes from the beginning, to the end of a line if there is one near.
fn beginning(text: &str, max: usize) -> &str {
    let (cut, rest) = text.split_at(text.floor_char_boundary(max));
    let line = cut.rfind('\n').filter(|end| *end >= max / 2 && !rest.starts_with('\n'));
    line.map_or(cut, |end| &cut[..end])
}

/// Returns at most so many bytes to the end, from the beginning of a line if there is one near.
fn ending(text: &str, max: usize) -> &str {
    let (before, cut) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(max)));
    let line = cut.find('\n').filter(|start| *start < max / 2 && !before.ends_with('\n'));
    line.map_or(cut, |start| &cut[start + 1..])
}

#[cfg(test)]
mod tests;
