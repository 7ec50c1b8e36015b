//! The text that reports ends of tasks. Pure.

use std::fmt::Write as _;

use mainstem_event::TaskStatus;
use mainstem_message::TaskId;
use mainstem_task::TaskRecord;

use crate::spawn::report::GO_ON;

const OPEN: &str = "<system-reminder>\nBackground tasks delivered:\n";
const CLOSE: &str = "</system-reminder>";

/// How many characters of a result are reported.
const SUMMARY: usize = 2000;

/// Returns a message about tasks that have ended; the next one reports `later` more.
pub(super) fn reminder(ended: &[TaskRecord], later: usize) -> String {
    let mut text = OPEN.to_owned();
    for task in ended {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", entry(task));
    }
    if later > 0 {
        let _ = writeln!(text, "{later} more have ended; you are told of them next.");
    }
    text.push_str(CLOSE);
    text
}

/// Returns `true` if a message is such a reminder and names the task.
pub(super) fn tells_of(message: &str, task: &TaskId) -> bool {
    message.starts_with(OPEN) && message.lines().any(|line| line.starts_with(&first(task)))
}

fn first(id: &TaskId) -> String {
    format!("- task_id={id}, ")
}

fn entry(task: &TaskRecord) -> String {
    let label = task.label.as_ref().map(|label| format!(", label={}", one_line(label))).unwrap_or_default();
    let status = task.status.as_str().to_uppercase();
    let what = match task.status {
        TaskStatus::Completed => {
            format!("result summary: {}", summary(task.result.as_deref().unwrap_or_default()))
        }
        TaskStatus::Cancelled => format!("cancelled by {}", one_line(by(task))),
        _ => format!("error: {}{}", summary(&error(task)), partial(task)),
    };
    format!("{}agent={}{label}, status={status}\n  {what}", first(&task.id), task.agent_id)
}

/// Returns what a task that failed has come to, and how its child goes on.
fn partial(task: &TaskRecord) -> String {
    let partial = task.result.as_ref();
    let shown =
        |partial: &String| format!("\n  {}\n  agent_key: {}\n  {GO_ON}", summary(partial), task.agent_key);
    partial.map_or_else(String::new, shown)
}

/// Returns the beginning of a text, in lines that can't be taken for entries, and without tags.
fn summary(text: &str) -> String {
    let text = text.trim();
    let shown: String = text.chars().take(SUMMARY).collect();
    let left = text.chars().count().saturating_sub(SUMMARY);
    let more = if left > 0 {
        format!(" … ({left} more characters: task_output has all of it)")
    } else {
        String::new()
    };
    escape(&shown).replace('\n', "\n  ") + &more
}

fn one_line(text: &str) -> String {
    escape(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Escapes a text so that it can't open or close a tag.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\r', "")
}

fn by(task: &TaskRecord) -> &str {
    task.cancel.as_ref().map_or("the user", |cancel| &cancel.by)
}

fn error(task: &TaskRecord) -> String {
    task.error.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Returns all about a task.
pub(super) fn of_task(task: &TaskRecord) -> String {
    let TaskRecord { id, agent_id, agent_key, status, created_at, updated_at, .. } = task;
    let mut text = format!("task_id: {id}\nagent_id: {agent_id}\nagent_key: {agent_key}\n");
    if let Some(label) = &task.label {
        let _ = writeln!(text, "label: {label}");
    }
    let _ = write!(text, "status: {}\ncreated_at: {created_at}\nupdated_at: {updated_at}", status.as_str());
    let _ = match task.status {
        TaskStatus::Completed => write!(text, "\nresult:\n{}", task.result.as_deref().unwrap_or_default()),
        TaskStatus::Failed => {
            let partial = task.result.as_ref().map(|partial| format!("\n{partial}\n{GO_ON}"));
            write!(text, "\nerror: {}{}", error(task), partial.unwrap_or_default())
        }
        TaskStatus::Cancelled => write!(text, "\ncancelled by {}", by(task)),
        _ => write!(text, "\nIt is still running."),
    };
    text
}
