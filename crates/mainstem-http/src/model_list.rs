//! The models that a service lists.

use reqwest::Url;
use serde_json::Value;

/// A model that a service lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedModel {
    /// Its name at the service.
    pub id: String,
    /// The most tokens of a request and its answer, if the service says so.
    pub context_window: Option<u64>,
    /// The most tokens of an answer, if the service says so.
    pub max_output_tokens: Option<u64>,
}

/// One page of a list of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by each API")]
pub struct ModelPage {
    /// The models, in the order of the service.
    pub models: Vec<ListedModel>,
    /// The parameter of the query for the next page; `None` on the last page.
    pub next: Option<(&'static str, String)>,
}

impl ListedModel {
    /// Reads an entry of a list; `None` if it has no name. The fields with these names have the
    /// name, the window and the limit; the first that is there counts. A `/` leads into an object.
    pub fn read(entry: &Value, id: &str, windows: &[&str], outputs: &[&str]) -> Option<Self> {
        let number = |names: &[&str]| {
            names.iter().find_map(|name| entry.pointer(&format!("/{name}")).and_then(Value::as_u64))
        };
        let id = entry.get(id)?.as_str()?.to_owned();
        Some(Self { id, context_window: number(windows), max_output_tokens: number(outputs) })
    }
}

/// Returns the URL of a page, given the parameter that the page before named.
pub(crate) fn page_url(mut list: Url, next: Option<&(&'static str, String)>) -> Url {
    if let Some((name, value)) = next {
        list.query_pairs_mut().append_pair(name, value);
    }
    list
}
