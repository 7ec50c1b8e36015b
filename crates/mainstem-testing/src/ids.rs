//! Ids that count.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use mainstem_event::Ids;

/// `run-1`, `run-2`, `agent:reviewer:1` …: each prefix has its own count.
#[derive(Debug, Default)]
pub struct CountedIds(Mutex<HashMap<String, u64>>);

impl Ids for CountedIds {
    fn next(&self, prefix: &str) -> String {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(prefix.to_owned()).or_default();
        *count += 1;
        format!("{prefix}{count}")
    }
}
