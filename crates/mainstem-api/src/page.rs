//! Pages of lists, and which of their items a reader gets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use mainstem_message::RunId;

use crate::{Code, JobQuery, Problem};

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Page<T> {
    /// The items; a page in the middle of the list may have fewer than the limit.
    pub items: Vec<T>,
    /// The cursor of the next page; absent if this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Selects a page of the sessions. The one whose run began last comes first.
///
/// A session comes to the front with each run. One that begins a run while a reader turns pages may
/// be missing from the later pages, and is on the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct SessionQuery {
    /// Only sessions with this text in their ids, in upper or lower case.
    #[schemars(length(max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// The maximum number of sessions, at most 1000. Default 100.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The [`next`](Page::next) of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Selects a page of the runs of a session: the latest ones, then those before them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct RunQuery {
    /// The maximum number of runs, at most 1000. Default 100.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The [`next`](Page::next) of a page: the page of the runs before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The maximum number of items of a page.
pub const MAX_LIMIT: u32 = 1000;

/// The maximum number of items of a page whose query has no limit.
const DEFAULT_LIMIT: u32 = 100;

/// The maximum number of characters of a search.
const MAX_SEARCH: usize = 200;

/// Returns the number of items of a page with this limit.
fn page_size(limit: Option<u32>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit as usize);
    }
    Err(Problem::new(Code::BadQuery, format!("`limit` is {limit}; it is 1 to {MAX_LIMIT}")))
}

impl SessionQuery {
    /// Returns the maximum number of sessions.
    ///
    /// # Errors
    /// The limit or the search is out of its bounds.
    pub fn size(&self) -> Result<usize, Problem> {
        let search = self.search.as_deref().unwrap_or_default();
        if search.chars().count() > MAX_SEARCH || search.contains('\0') {
            let detail = format!("`search` has at most {MAX_SEARCH} characters, and no NUL");
            return Err(Problem::new(Code::BadQuery, detail));
        }
        page_size(self.limit)
    }
}

impl RunQuery {
    /// Returns the page of a session's runs, which are in order, oldest first; `id` is that of a
    /// run.
    ///
    /// # Errors
    /// The limit is out of its bounds, or the cursor is not that of a page.
    pub fn page_of<T>(&self, mut runs: Vec<T>, id: impl Fn(&T) -> &RunId) -> Result<Page<T>, Problem> {
        let size = page_size(self.limit)?;
        if let Some(cursor) = &self.cursor {
            let end = runs.iter().position(|run| id(run).as_str() == cursor);
            let wrong = || Problem::new(Code::BadQuery, "`cursor` is not the `next` of a page");
            runs.truncate(end.ok_or_else(wrong)?);
        }
        let items = runs.split_off(runs.len().saturating_sub(size));
        let next = items.first().map(|run| id(run).to_string()).filter(|_| !runs.is_empty());
        Ok(Page { items, next })
    }
}

impl JobQuery {
    /// Returns the maximum number of jobs.
    ///
    /// # Errors
    /// The limit is out of its bounds.
    pub fn size(&self) -> Result<usize, Problem> {
        page_size(self.limit)
    }
}
