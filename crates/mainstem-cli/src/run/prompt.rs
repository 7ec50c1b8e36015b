//! The prompt of a run: words of the command line, and what is piped to it.

use std::{io, sync::mpsc::channel, thread, time::Duration};

use anyhow::{Context, bail, ensure};

use crate::{args, config::read::bounded_bytes, demo, progress, terminal::Terminal};

/// The most bytes of stdin.
const STDIN: u64 = 16 << 20;

/// How long stdin may say nothing before a note says what the command waits for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns the prompt, which is empty if a turn is resumed.
///
/// # Errors
/// There is none, or stdin can't be read.
pub(super) fn prompt(args: &args::Run, is_demo: bool, terminal: Terminal) -> anyhow::Result<String> {
    if args.resume {
        return Ok(String::new());
    }
    let words = args.prompt.join(" ");
    let prompt = match (&*args.prompt, is_demo) {
        ([dash], _) if dash == "-" => stdin(terminal)?,
        ([], true) => demo::PROMPT.to_owned(),
        (_, true) => words,
        ([], _) if is_piped() || is_socket() => {
            let piped = stdin(terminal)?;
            ensure!(!piped.trim().is_empty(), "no PROMPT is given, and stdin is empty");
            piped
        }
        ([], _) => bail!("no PROMPT is given; say what to do, or pipe it to stdin"),
        _ if is_piped() => {
            let piped = stdin(terminal)?;
            if !args.progress.is_quiet() && !piped.trim().is_empty() {
                // In a loop over the lines of a file, the file may not be meant for it.
                progress::say(&format!("{} bytes of stdin follow the PROMPT", piped.len()), terminal);
            }
            with_context(words, &piped)
        }
        _ => words,
    };
    ensure!(!prompt.trim().is_empty(), "the PROMPT is empty");
    Ok(prompt)
}

/// Adds what was piped to a prompt.
fn with_context(prompt: String, piped: &str) -> String {
    if piped.trim().is_empty() {
        prompt
    } else {
        format!("{prompt}\n\n<stdin>\n{}\n</stdin>", piped.trim_end())
    }
}

/// Returns `true` if stdin is a pipe or a file, rather than a terminal or `/dev/null`.
#[cfg(unix)]
fn is_piped() -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind_of_stdin().is_some_and(|kind| kind.is_file() || kind.is_fifo())
}

/// Returns `true` if stdin is a socket, as Node gives to the programs that it starts. Programs that
/// write nothing may leave it open, so that it is read only for a PROMPT.
#[cfg(unix)]
fn is_socket() -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind_of_stdin().is_some_and(|kind| kind.is_socket())
}

#[cfg(unix)]
fn kind_of_stdin() -> Option<std::fs::FileType> {
    use std::{fs::File, os::fd::AsFd};
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(stdin).metadata().ok().map(|about| about.file_type())
}

#[cfg(not(unix))]
fn is_piped() -> bool {
    use std::io::IsTerminal;
    !io::stdin().is_terminal()
}

#[cfg(not(unix))]
fn is_socket() -> bool {
    false
}

/// Returns the keyboard of the terminal if stdin is something else, so that questions can be
/// answered although something is piped in. A process in the background gets none: reading would
/// stop it.
#[cfg(unix)]
pub(super) fn keyboard(terminal: Terminal) -> Option<Keyboard> {
    use rustix::{process::getpgrp, termios::tcgetpgrp};
    if terminal.stdin || !terminal.stderr || !is_piped() {
        return None;
    }
    let file = std::fs::File::open("/dev/tty").ok()?;
    let is_in_front = tcgetpgrp(&file).is_ok_and(|group| group == getpgrp());
    is_in_front.then_some(Keyboard(file))
}

#[cfg(not(unix))]
pub(super) fn keyboard(_: Terminal) -> Option<Keyboard> {
    None
}

/// The keyboard of the terminal.
pub(super) struct Keyboard(#[cfg(unix)] std::fs::File);

impl Keyboard {
    /// Replaces stdin with it, after stdin was read or if it is not read.
    pub(super) fn replace_stdin(self, terminal: Terminal) -> Terminal {
        #[cfg(unix)]
        let is_replaced = rustix::stdio::dup2_stdin(self.0).is_ok();
        #[cfg(not(unix))]
        let is_replaced = false;
        Terminal { stdin: terminal.stdin || is_replaced, ..terminal }
    }
}

/// Reads stdin to its end.
fn stdin(terminal: Terminal) -> anyhow::Result<String> {
    let (sender, read) = channel();
    thread::spawn(move || sender.send(bounded_bytes(io::stdin(), STDIN)));
    let bytes = read.recv_timeout(PATIENCE).or_else(|_| {
        let note = if terminal.stdin {
            "reading the PROMPT from stdin until Ctrl-D"
        } else {
            "waiting for stdin to end; `< /dev/null` stands for none"
        };
        progress::say(note, terminal);
        read.recv()
    });
    // The thread sends before it ends.
    let bytes = bytes.unwrap_or_else(|_| bail!("it is closed")).context("stdin can't be read")?;
    // A diff has the lines of files in any encoding.
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
        progress::say("stdin has bytes that are not UTF-8 text; U+FFFD stands for them", terminal);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_comes_after_the_prompt() {
        let check =
            |piped: &str, expected: &str| assert_eq!(with_context("Fix it".to_owned(), piped), expected);
        check("", "Fix it");
        check("\n", "Fix it");
        check("a\nb\n", "Fix it\n\n<stdin>\na\nb\n</stdin>");
    }
}
