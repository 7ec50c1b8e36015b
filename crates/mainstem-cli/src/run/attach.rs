//! Files of `--attach`, as content of the prompt.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem::message::{ContentBlock, DataSource, Message, Opaque, Role};

/// The most bytes of all files of a prompt. Services accept no larger requests: 32 MB at Anthropic,
/// of base64.
const MOST: u64 = 20 << 20;

/// The media types of data that a service reads.
const READ: [&str; 8] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "audio/wav",
    "audio/mpeg",
    "audio/flac",
];

/// Returns a prompt with these files, each behind its name.
///
/// # Errors
/// If a file can't be read, is of a type that no service reads, or all are larger than 20 MiB.
pub(super) fn message(prompt: &str, files: &[PathBuf]) -> anyhow::Result<Message> {
    let mut content = vec![ContentBlock::text(prompt)];
    let mut left = MOST;
    for path in files {
        let bytes = read(path, &mut left).and_then(|bytes| block(path, bytes));
        content.extend(bytes.with_context(|| format!("--attach {}", path.display()))?);
    }
    Ok(Message::new(Role::User, content))
}

fn read(path: &Path, left: &mut u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(*left + 1).read_to_end(&mut bytes)?;
    ensure!(!bytes.is_empty(), "the file is empty");
    *left = left
        .checked_sub(bytes.len() as u64)
        .with_context(|| format!("attached files have at most {} MiB together", MOST >> 20))?;
    Ok(bytes)
}

/// Returns the blocks of a file: its name, and its text or data.
fn block(path: &Path, bytes: Vec<u8>) -> anyhow::Result<Vec<ContentBlock>> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let bytes = match media_type(&bytes) {
        Some(media_type) if READ.contains(&media_type) => {
            let source = DataSource::Base64(BASE64_STANDARD.encode(bytes));
            let data =
                ContentBlock::Data { media_type: media_type.to_owned(), source, opaque: Opaque::new() };
            return Ok(vec![ContentBlock::text(format!("The file `{name}`:")), data]);
        }
        Some(media_type) if !media_type.starts_with("text/") => {
            bail!(
                "no model reads {media_type}; images (PNG, JPEG, GIF, WebP), PDF, WAV, MP3, FLAC and text are read"
            )
        }
        _ => bytes,
    };
    let text =
        String::from_utf8(bytes).context("it is neither text in UTF-8, nor an image, a PDF or audio")?;
    Ok(vec![ContentBlock::text(format!("The file `{name}`:\n\n{text}"))])
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
