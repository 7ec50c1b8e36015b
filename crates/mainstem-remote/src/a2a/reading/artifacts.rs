//! How much of each artifact was shown. Pure.

use std::collections::HashMap;

use mainstem_a2a::sdk::{Artifact, Part};
use sha2::{Digest as _, Sha256};

use super::{MAX_SHOWN, TooMany};

/// The artifacts of a task, by id. Of their contents only digests are stored.
#[derive(Debug, Default)]
pub(super) struct Artifacts(HashMap<String, Shown>);

/// How much of an artifact was shown.
#[derive(Clone, Debug, Default)]
struct Shown {
    text: Sha256,
    bytes: usize,
    /// How many parts that are not text.
    others: usize,
}

impl Artifacts {
    /// Adds an artifact, unless it is known.
    pub(super) fn add(&mut self, id: &str) -> Result<(), TooMany> {
        if !self.0.contains_key(id) {
            if self.0.len() == MAX_SHOWN {
                return Err(TooMany);
            }
            self.0.insert(id.to_owned(), Shown::default());
        }
        Ok(())
    }

    /// Returns `true` if an artifact is known.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Forgets an artifact, which was replaced.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Notes that a part was shown.
    pub(super) fn show(&mut self, id: &str, part: &Part) {
        let Some(shown) = self.0.get_mut(id) else { return };
        match part.as_text() {
            Some(text) => {
                shown.text.update(text);
                shown.bytes += text.len();
            }
            None => shown.others += 1,
        }
    }

    /// Returns what a whole artifact has beyond what was shown; `None` if it does not begin with
    /// that.
    pub(super) fn rest(&self, artifact: &Artifact) -> Option<Vec<Part>> {
        let shown = self.0.get(&artifact.artifact_id).cloned().unwrap_or_default();
        let text: String = artifact.parts.iter().filter_map(Part::as_text).collect();
        let before = text.get(..shown.bytes)?;
        if Sha256::digest(before) != shown.text.finalize() {
            return None;
        }
        let others = artifact.parts.iter().filter(|part| part.as_text().is_none());
        if others.clone().count() < shown.others {
            return None;
        }
        let text = Some(&text[shown.bytes..]).filter(|text| !text.is_empty()).map(Part::text);
        Some(text.into_iter().chain(others.skip(shown.others).cloned()).collect())
    }

    /// Returns the bytes of text that were shown of each artifact.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(id, shown)| (id.as_str(), shown.bytes))
    }
}
