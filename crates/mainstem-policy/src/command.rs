//! Shell commands, read in two ways, both conservative.
//!
//! The shell that will run the text is unknown. So a command is allowed only if it is so plain that
//! all shells agree on it, and a refused command is searched wherever a shell might find one.

use crate::glob;

/// Words after which a later word may be a command of its own.
const RUNNERS: &[&str] = &[
    "!", ".", "ash", "bash", "builtin", "busybox", "case", "chroot", "command", "coproc", "dash", "do",
    "doas", "elif", "else", "env", "eval", "exec", "find", "fish", "flock", "if", "ionice", "ksh", "nice",
    "nohup", "parallel", "runuser", "setsid", "sh", "source", "ssh", "stdbuf", "su", "sudo", "then", "time",
    "timeout", "trap", "unshare", "until", "watch", "while", "xargs", "zsh",
];
/// The number of words that are searched. A longer command may hide anything, and is refused
/// without a search.
const WORDS: usize = 256;

/// Returns `true` if every command that the text would run matches.
pub(crate) fn covers(glob: &str, command: &str) -> bool {
    let Some(parts) = simple_parts(command) else { return false };
    !parts.is_empty() && parts.iter().all(|part| fits(glob, part))
}

/// Returns `true` if a command that the text might run matches.
pub(crate) fn touches(glob: &str, command: &str) -> bool {
    let command = command.replace("\\\n", "");
    fits(glob, command.trim())
        || fits(glob, &unquoted(&command))
        || simple_parts(&command).is_some_and(|parts| parts.iter().any(|part| fits(glob, part)))
        || command.split(is_boundary).any(|part| touches_simple(glob, &unquoted(part)))
}

/// Returns `true` if a command matches. `git *` also matches plain `git`, so that a refused command
/// can't be run without arguments.
fn fits(glob: &str, command: &str) -> bool {
    glob::matches(glob, command) || glob.strip_suffix(" *").is_some_and(|bare| glob::matches(bare, command))
}

/// Returns the simple commands of a list or pipeline; `None` for text that needs a shell's parser:
/// substitutions, redirections, groups, comments, escapes, open quotes. A comment may hide a quote,
/// a quote a newline, and a backslash differs between shells.
fn simple_parts(command: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut start, mut quote, mut before) = (0, None, '\n');
    for (at, c) in command.char_indices() {
        match (quote, c) {
            (_, '\\' | '`' | '\0' | '\r') => return None,
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '(' | '{' | '[' | '\'' | '"') if before == '$' => return None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '<' | '>' | '(' | ')' | '#') => return None,
            (None, ';' | '&' | '|' | '\n') => {
                parts.push(&command[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
        before = c;
    }
    parts.push(&command[start..]);
    // Shells take only these for blanks; another white space character begins a word.
    let trimmed = parts.into_iter().map(|part| part.trim_matches([' ', '\t']));
    let parts = trimmed.filter(|part| !part.is_empty()).collect();
    quote.is_none().then_some(parts)
}

/// Returns `true` if a command may begin or end here even within quotes, which may hold another
/// shell's script.
fn is_boundary(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '\n' | '\r' | '(' | ')' | '{' | '}' | '<' | '>' | '`' | '#')
}

/// Returns the words without the quotes that shells remove, one blank apart.
fn unquoted(part: &str) -> String {
    let plain = part.replace(['\'', '"', '\\', '$'], "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn touches_simple(glob: &str, part: &str) -> bool {
    let mut rest = part;
    let mut any_word_runs = false;
    for _ in 0..WORDS {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let name = word.rsplit('/').next().unwrap_or(word);
        if fits(glob, rest) || fits(glob, &rest[word.len() - name.len()..]) {
            return true;
        }
        any_word_runs |= RUNNERS.contains(&name) || word.contains('=');
        if !any_word_runs || after.is_empty() {
            return false;
        }
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests;
