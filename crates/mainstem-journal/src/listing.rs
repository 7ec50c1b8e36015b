//! Pages of a journal's sessions and jobs.

use std::{fmt, str::FromStr};

use mainstem_event::Timestamp;
use mainstem_message::TenantName;

use crate::{Job, JobStatus, SessionSummary};

/// Which sessions a page has. The list has the greatest place first: the session whose run began
/// last.
///
/// A session moves to the front with each run. So one that begins a run while a reader turns pages
/// may be missing from the later ones, and is on the first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The part of the journal.
    pub part: Part,
    /// The last place of the page before; the first page if it is absent.
    pub after: Option<Place>,
    /// A text that the ids have, in upper or lower case; empty for all ids.
    pub search: String,
    /// The maximum number of sessions.
    pub max: usize,
}

/// A part of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a session has a tenant or none")]
pub enum Part {
    /// The sessions of all tenants, and those without a tenant.
    All,
    /// The sessions of one tenant; `None` is for those without a tenant.
    Of(Option<TenantName>),
}

/// The place of a session or a job in the list of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a place has two coordinates")]
pub struct Place {
    /// Of a session, when its last run began, or the time of its first event if none has. Of a job,
    /// when it is due.
    pub at: Timestamp,
    /// The name in the store: the id, unless that is damaged.
    pub name: String,
}

impl Listing {
    /// The first page, of at most this number of sessions.
    pub fn new(part: Part, max: usize) -> Self {
        Self { part, after: None, search: String::new(), max }
    }

    /// Sets the text that the ids have.
    #[must_use]
    pub fn with_search(self, search: impl Into<String>) -> Self {
        Self { search: search.into(), ..self }
    }

    /// Sets the maximum number of sessions.
    #[must_use]
    pub fn with_max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Returns the page of these sessions. For journals that can read all of them.
    pub fn page(&self, mut sessions: Vec<SessionSummary>) -> Vec<SessionSummary> {
        sessions.retain(|session| self.has(&session.place));
        sessions.sort_by(|one, other| other.place.cmp(&one.place));
        sessions.truncate(self.max);
        sessions
    }

    /// Returns `true` if the session at this place is on this page or on a later one.
    pub fn has(&self, place: &Place) -> bool {
        let id = place.name.split_once('/').map_or(&*place.name, |(_, id)| id);
        let is_found = id.to_ascii_lowercase().contains(&self.search.to_ascii_lowercase());
        self.part.has(&place.name) && is_found && self.after.as_ref().is_none_or(|after| place < after)
    }
}

impl Part {
    /// Returns `true` if a session or job of this name is in the part.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(tenant) => {
                tenant.as_ref().map(TenantName::as_str) == name.split_once('/').map(|(tenant, _)| tenant)
            }
        }
    }
}

/// Which jobs a page has. The list has the least place first: the job that is due first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobListing {
    /// The part of the store.
    pub part: Part,
    /// The statuses; all if there is none.
    pub statuses: Vec<JobStatus>,
    /// The last place of the page before; the first page if it is absent.
    pub after: Option<Place>,
    /// The maximum number of jobs.
    pub max: usize,
}

impl JobListing {
    /// The first page, of at most this number of jobs.
    pub fn new(part: Part, statuses: impl Into<Vec<JobStatus>>, max: usize) -> Self {
        Self { part, statuses: statuses.into(), after: None, max }
    }

    /// Returns the page of these jobs. For stores that can read all of them.
    pub fn page(&self, mut jobs: Vec<Job>) -> Vec<Job> {
        let is_here = |place: &Place| {
            self.part.has(&place.name) && self.after.as_ref().is_none_or(|after| place > after)
        };
        jobs.retain(|job| is_here(&job.place()));
        jobs.sort_by_key(Job::place);
        jobs.truncate(self.max);
        jobs
    }
}

impl Place {
    /// Returns the place in a store of several tenants for this one in a tenant's part.
    pub(crate) fn scoped(&self, tenant: &TenantName) -> Self {
        Self { name: format!("{tenant}/{}", self.name), ..*self }
    }

    /// Returns the place within a tenant's part; `None` if it is not in that part.
    pub(crate) fn unscoped(&self, tenant: &TenantName) -> Option<Self> {
        let name = self.name.strip_prefix(tenant.as_str())?.strip_prefix('/')?.to_owned();
        Some(Self { name, ..*self })
    }
}

/// Microseconds, a dot, and the name.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_micros(), self.name)
    }
}

/// A text that is not a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place in a list is a number, a dot, and a name")]
#[expect(clippy::exhaustive_structs, reason = "it has no details")]
pub struct PlaceError;

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (micros, name) = text.split_once('.').filter(|_| !text.contains('\0')).ok_or(PlaceError)?;
        let at = Timestamp::from_micros(micros.parse().map_err(|_| PlaceError)?);
        Ok(Self { at, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    //! Places as text.

    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for name in ["s", "acme/s", "a.b", "a b", ""] {
            let place = Place { at: Timestamp::from_micros(7), name: name.to_owned() };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in ["", "7", "x.s", "7.a\0b", "-1.s", "99999999999999999999.s"] {
            assert_eq!(text.parse::<Place>(), Err(PlaceError), "{text}");
        }
    }
}
