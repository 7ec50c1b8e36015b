//! What of a project's file needs trust, and what it does.

use std::{collections::BTreeMap, fmt::Display, path::Path};

use mainstem::policy::Part;
use serde_json::{Value, json};
use std::path::PathBuf;

use super::{
    NAME, Setting,
    keys::Key,
    switch::OnOff,
    table::{At, Table},
};

/// A part of a file that needs trust, and the values that it sets.
#[derive(Clone, Debug)]
pub(super) struct Guarded<T> {
    /// Relative to the key of `T`; empty for all of it.
    key: String,
    content: Value,
    does: Vec<String>,
    sets: T,
}

impl<T> Guarded<T> {
    fn new(at: &At<'_>, does: String, sets: T) -> Self {
        Self { key: String::new(), content: at.raw.clone(), does: vec![does], sets }
    }

    /// Makes it a part of the table that has it at this key.
    pub(super) fn within<U>(self, key: &str, table: impl FnOnce(T) -> U) -> Guarded<U> {
        let Self { key: rest, content, does, sets } = self;
        let key = if rest.is_empty() { key.to_owned() } else { format!("{key}.{rest}") };
        Guarded { key, content, does, sets: table(sets) }
    }

    /// Returns the part of a project's file, and the values that it sets.
    pub(super) fn into_part(self) -> (Part, T) {
        let part = Part::new(NAME, self.key, self.content);
        (self.does.into_iter().fold(part, Part::doing), self.sets)
    }
}

/// Decides what of a value needs trust.
pub(super) trait TrustPolicy<T> {
    /// Splits a value into what applies at once and the parts that need trust.
    fn split(&self, value: T, at: &At<'_>) -> (T, Vec<Guarded<T>>);

    /// Returns what needs trust, as a file has it, and what it does; `None` if nothing does.
    fn guarded(&self, key: &str) -> Option<(String, String)>;

    /// Returns the keys of the value, if it is a table of settings.
    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
}

/// It applies at once: it chooses, or narrows what the user allows.
pub(super) struct NotNeeded;

impl<T> TrustPolicy<T> for NotNeeded {
    fn split(&self, value: T, _at: &At<'_>) -> (T, Vec<Guarded<T>>) {
        (value, Vec::new())
    }

    fn guarded(&self, _key: &str) -> Option<(String, String)> {
        None
    }
}

/// Each key of the table decides.
pub(super) struct ByKey;

impl<T: Table> TrustPolicy<T> for ByKey {
    fn split(&self, table: T, at: &At<'_>) -> (T, Vec<Guarded<T>>) {
        table.split(at)
    }

    fn guarded(&self, _key: &str) -> Option<(String, String)> {
        None
    }

    fn keys(&self) -> Vec<Key> {
        T::keys()
    }
}

/// To turn it on needs trust, and does this.
pub(super) struct ToTurnOn(pub(super) &'static str, pub(super) &'static str);

impl<T: OnOff + Default> TrustPolicy<T> for ToTurnOn {
    fn split(&self, value: T, at: &At<'_>) -> (T, Vec<Guarded<T>>) {
        match value.state() {
            Some(true) => (T::default(), vec![Guarded::new(at, self.1.to_owned(), value)]),
            _ => (value, Vec::new()),
        }
    }

    fn guarded(&self, key: &str) -> Option<(String, String)> {
        Some((format!("{key} = {}", self.0), self.1.to_owned()))
    }
}

/// To set it needs trust: what it does in general, and with this value.
pub(super) struct ToSet<T>(pub(super) &'static str, pub(super) fn(&T) -> String);

impl<T: Default + PartialEq> TrustPolicy<T> for ToSet<T> {
    fn split(&self, value: T, at: &At<'_>) -> (T, Vec<Guarded<T>>) {
        if value == T::default() {
            return (value, Vec::new());
        }
        let does = (self.1)(&value);
        (T::default(), vec![Guarded::new(at, does, value)])
    }

    fn guarded(&self, key: &str) -> Option<(String, String)> {
        Some((key.to_owned(), self.0.to_owned()))
    }
}

/// Each entry of a map needs trust by itself: what it does in general, and what the one of this
/// name does, given as a value and as the file has it. One that does nothing applies at once.
pub(super) struct ForEach<V>(pub(super) &'static str, pub(super) fn(&str, &V, &Value) -> Vec<String>);

impl<K: Ord + Display, V> TrustPolicy<BTreeMap<K, V>> for ForEach<V> {
    fn split(&self, map: BTreeMap<K, V>, at: &At<'_>) -> (BTreeMap<K, V>, Vec<Guarded<BTreeMap<K, V>>>) {
        let (mut plain, mut guarded) = (BTreeMap::new(), Vec::new());
        for (name, value) in map {
            let key = name.to_string();
            let content = at.raw[&key].clone();
            let does = (self.1)(&key, &value, &content);
            if does.is_empty() {
                plain.insert(name, value);
            } else {
                guarded.push(Guarded { key, content, does, sets: [(name, value)].into() });
            }
        }
        (plain, guarded)
    }

    fn guarded(&self, key: &str) -> Option<(String, String)> {
        Some((format!("{key}.NAME"), self.0.to_owned()))
    }
}

/// A directory outside the folder of the file needs trust.
pub(super) struct ToLeaveTheFolder;

impl TrustPolicy<Option<Setting<PathBuf>>> for ToLeaveTheFolder {
    fn split(
        &self,
        directory: Option<Setting<PathBuf>>,
        at: &At<'_>,
    ) -> (Option<Setting<PathBuf>>, Vec<Guarded<Option<Setting<PathBuf>>>>) {
        let leads_to = directory.as_ref().and_then(|directory| outside(at.folder, &directory.value));
        let Some(leads_to) = leads_to else { return (directory, Vec::new()) };
        let does = format!("lets agents work in {leads_to}, outside the folder");
        let part = Guarded { content: json!(leads_to), ..Guarded::new(at, does, directory) };
        (None, vec![part])
    }

    fn guarded(&self, key: &str) -> Option<(String, String)> {
        Some((format!("{key} = \"../x\""), "lets agents work outside the folder".to_owned()))
    }
}

/// Returns where a directory leads if that is outside the folder; a missing directory is reported
/// later.
fn outside(folder: &Path, directory: &Path) -> Option<String> {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let (folder, leads_to) = (folder.canonicalize().ok()?, directory.canonicalize().ok()?);
    (!leads_to.starts_with(folder)).then(|| leads_to.display().to_string())
}
