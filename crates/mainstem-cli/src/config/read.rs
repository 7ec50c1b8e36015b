//! Small files at paths that may be devices, pipes or directories.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, ErrorKind, Read},
    path::Path,
};

use anyhow::{Context, ensure};

/// Returns the text of a regular file; `None` if the path does not exist. Does not wait for the
/// other end of a pipe, and opens no device.
///
/// # Errors
/// The path is not a regular file, or the file is longer than `max` bytes, not UTF-8, or can't be
/// read.
pub(crate) fn text(path: &Path, max: u64) -> anyhow::Result<Option<String>> {
    read(path, max).with_context(|| path.display().to_string())
}

/// Returns the text of a file that a flag names, which may be a pipe: `<(command)`.
///
/// # Errors
/// The file can't be read, is longer than `max` bytes, or is not UTF-8.
pub(crate) fn named(path: &Path, max: u64) -> anyhow::Result<String> {
    bounded(File::open(path)?, max)
}

/// Reads to the end, as text.
///
/// # Errors
/// As [`named`].
pub(crate) fn bounded(from: impl Read, max: u64) -> anyhow::Result<String> {
    String::from_utf8(bounded_bytes(from, max)?).context("it is not UTF-8 text")
}

/// Reads to the end.
///
/// # Errors
/// It can't be read, or there is more than `max` bytes.
pub(crate) fn bounded_bytes(from: impl Read, max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= max, "it is larger than {max} bytes");
    Ok(bytes)
}

fn read(path: &Path, max: u64) -> anyhow::Result<Option<String>> {
    let kind = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata?.file_type(),
    };
    // Opening a device can have effects, so the type is checked first; and again after opening,
    // because the path may have changed.
    ensure_regular(kind)?;
    let file = open(path)?;
    ensure_regular(file.metadata()?.file_type())?;
    bounded(file, max).map(Some)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

fn ensure_regular(kind: FileType) -> anyhow::Result<()> {
    ensure!(kind.is_file(), "it is a {}; put a regular file there", name(kind));
    Ok(())
}

#[cfg(unix)]
fn name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_dir() => "directory",
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        _ => "device",
    }
}

#[cfg(not(unix))]
fn name(kind: FileType) -> &'static str {
    if kind.is_dir() { "directory" } else { "special file" }
}
