//! Files as content of a prompt: `--attach`, and `/attach` of a chat.

use std::{
    fs::File,
    io::Read,
    iter::successors,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem::message::{ContentBlock, DataSource, Message, Opaque, Role};

/// The most bytes of all files of a prompt. Services accept no larger requests: 32 MB at Anthropic,
/// of base64.
const MAX_BYTES: u64 = 20 << 20;

/// The media types of data that a service reads.
const MEDIA_TYPES: [&str; 8] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "audio/wav",
    "audio/mpeg",
    "audio/flac",
];

/// Files that are sent with a prompt.
#[derive(Clone, Debug)]
pub(crate) struct Attachments {
    content: Vec<ContentBlock>,
    /// How many bytes further files may have.
    left: u64,
}

impl Default for Attachments {
    fn default() -> Self {
        Self { content: Vec::new(), left: MAX_BYTES }
    }
}

impl Attachments {
    /// Adds a file, as it is now.
    ///
    /// # Errors
    /// If it can't be read, is of a type that no service reads, or all are larger than 20 MiB.
    pub(crate) fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        let bytes = read(path, self.left)?;
        let size = bytes.len() as u64;
        self.content.extend(block(path, bytes)?);
        self.left -= size;
        Ok(())
    }

    /// Returns a message of the user's with the files behind a prompt.
    pub(crate) fn into_message(self, prompt: &str) -> Message {
        let content = std::iter::once(ContentBlock::text(prompt)).chain(self.content).collect();
        Message::new(Role::User, content)
    }
}

/// Returns the files that a text mentions as `@FILE`, `@"MY FILE"` or `@MY\ FILE`, and the names
/// that look like those of files and are of none: they have a dot or a slash. Any other word that
/// names no file is only a word.
pub(crate) fn mentioned(text: &str) -> (Vec<PathBuf>, Vec<String>) {
    const CLOSING: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '"', '\''];
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '@' && (before.is_whitespace() || matches!(before, '(' | '"' | '\'')) {
            let name = name(&text[at + 1..]);
            // Marks that end a sentence are a part of the name only if there is such a file.
            let mut names = successors(Some(&*name), |name: &&str| (*name).strip_suffix(CLOSING));
            match names.clone().map(PathBuf::from).find(|path| path.is_file()) {
                Some(path) => files.push(path),
                None => {
                    let bare = names.by_ref().last().unwrap_or_default();
                    let is_like_a_file = bare.contains(['.', '/']) && !Path::new(bare).exists();
                    missing.extend(is_like_a_file.then(|| bare.to_owned()));
                }
            }
        }
        before = c;
    }
    files.dedup();
    (files, missing)
}

/// Returns the name that a text begins with: in quotes, or up to a blank without a backslash.
fn name(text: &str) -> String {
    if let Some((name, _)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        return name.to_owned();
    }
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !cfg!(windows) => name.extend(chars.next()),
            c if c.is_whitespace() => break,
            c => name.push(c),
        }
    }
    name
}

fn read(path: &Path, left: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(left + 1).read_to_end(&mut bytes)?;
    ensure!(!bytes.is_empty(), "the file is empty");
    ensure!(bytes.len() as u64 <= left, "attached files have at most {} MiB together", MAX_BYTES >> 20);
    Ok(bytes)
}

/// Returns the blocks of a file: its name, and its text or data. Texts of a message are joined, so
/// that each begins with an empty line.
fn block(path: &Path, bytes: Vec<u8>) -> anyhow::Result<Vec<ContentBlock>> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    if let Some(text) = text(&bytes) {
        return Ok(vec![ContentBlock::text(format!("\n\nThe file `{name}`:\n\n{text}"))]);
    }
    let media_type = media_type(&bytes).unwrap_or("unknown");
    ensure!(
        MEDIA_TYPES.contains(&media_type),
        "the file type is {media_type}; supported are PNG, JPEG, GIF, WebP, PDF, WAV, MP3, FLAC and UTF-8 text"
    );
    let source = DataSource::Base64(BASE64_STANDARD.encode(bytes));
    let data = ContentBlock::Data { media_type: media_type.to_owned(), source, opaque: Opaque::new() };
    Ok(vec![ContentBlock::text(format!("\n\nThe file `{name}`:\n\n")), data])
}

/// Returns the content if it is text: UTF-8 without NUL, and not a PDF.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0') && !text.starts_with("%PDF-")).then_some(text)
}

/// Returns the media type by the first bytes, as services name it.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let kind = infer::get(bytes)?.mime_type();
    Some(match kind {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        kind => kind,
    })
}

#[cfg(test)]
mod tests;
