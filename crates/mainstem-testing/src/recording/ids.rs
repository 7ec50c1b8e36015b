//! The recorded ids, in the order of their creation.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use mainstem_event::Ids;

use super::script::Script;
use crate::CountedIds;

/// The prefixes of the ids of an instance and, right after it, of its session.
const INSTANCE: &str = "agent:";
const SESSION: &str = "sub-";

/// Gives the recorded ids of each prefix, then counted ones.
pub(super) struct RecordedIds {
    script: Arc<Script>,
    left: Mutex<Left>,
    others: CountedIds,
}

#[derive(Default)]
struct Left {
    of_prefix: HashMap<String, VecDeque<String>>,
    /// The instance whose id was given last. Its session is the next one.
    last: Option<String>,
}

impl RecordedIds {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let mut left = Left::default();
        // Random ids are sorted by time, and counted ones by their number.
        let mut ids: Vec<_> = script.ids.iter().map(|(id, began)| (*began, id.len(), id)).collect();
        ids.sort();
        for (.., id) in ids {
            left.of_prefix.entry(prefix_of(id).to_owned()).or_default().push_back(id.clone());
        }
        Self { script, left: Mutex::new(left), others: CountedIds::default() }
    }
}

/// Returns the prefix that an id was made with: `agent:reviewer:`, `task-`.
fn prefix_of(id: &str) -> &str {
    let end = id.rfind(':').or_else(|| id.find('-')).map_or(0, |at| at + 1);
    &id[..end]
}

impl Ids for RecordedIds {
    fn next(&self, prefix: &str) -> String {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = match prefix {
            SESSION => left.last.take().and_then(|instance| self.script.sessions.get(&instance).cloned()),
            prefix => left.of_prefix.get_mut(prefix).and_then(VecDeque::pop_front),
        };
        if prefix.starts_with(INSTANCE) {
            left.last.clone_from(&recorded);
        }
        // None of these is among the recorded ones.
        recorded.unwrap_or_else(|| self.others.next(&format!("{prefix}further-")))
    }
}
