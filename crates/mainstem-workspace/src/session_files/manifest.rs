//! Which files a session has.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The files of a session at one moment, by their paths below its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The process that has stored it.
    pub(super) writer: Arc<str>,
    pub(super) files: BTreeMap<String, Entry>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The SHA-256 of its content, in hex, which names its object.
    pub(super) hash: String,
    /// Its size, in bytes.
    pub(super) size: u64,
    /// Whether its owner may execute it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) executable: bool,
}

impl Manifest {
    /// Returns `true` if a file has this content.
    pub(super) fn has(&self, hash: &str) -> bool {
        self.files.values().any(|entry| entry.hash == hash)
    }

    /// Returns the first path that is not one of a file below the directory: the store may have
    /// been written by anyone who has its key.
    pub(super) fn bad_path(&self) -> Option<&str> {
        let is_bad = |path: &str| {
            path.split('/').any(|part| ["", ".", ".."].contains(&part) || part.contains(['\\', '\0']))
        };
        self.files.keys().map(String::as_str).find(|path| is_bad(path))
    }
}

impl Entry {
    pub(super) fn of(bytes: &[u8], executable: bool) -> Self {
        Self { hash: hash(bytes), size: bytes.len() as u64, executable }
    }
}

/// Returns the SHA-256 in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
