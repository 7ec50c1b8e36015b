//! What the caller of a run says about its children.

use mainstem_event::{Background, RunSettings};
use mainstem_react::RunContext;

use crate::member::Member;

/// How a run treats its children. [`Fleet::enter`](crate::fleet::Fleet::enter) takes it; an agent without
/// a fleet has the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpawnOptions {
    /// A call that is out of time stops its child (`status: timeout`); nothing becomes a background
    /// task.
    pub force_sync: bool,
    /// What becomes of background tasks when the root has its answer.
    pub background: Background,
    /// Whether somebody answers when a person is asked (default); if not, asking is refusing, and
    /// external tools fail.
    pub has_people: bool,
    /// The depth of the deepest agent of the run, if that is below the session's
    /// [`Limits`](crate::fleet::Limits).
    pub max_depth: Option<u16>,
    /// How many children of the run execute at once, if that is below the session's
    /// [`Limits`](crate::fleet::Limits).
    pub max_children: Option<usize>,
}

impl Default for SpawnOptions {
    fn default() -> Self {
        Self {
            force_sync: false,
            background: Background::default(),
            has_people: true,
            max_depth: None,
            max_children: None,
        }
    }
}

impl SpawnOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether calls stop their children when they are out of time.
    #[must_use]
    pub fn with_force_sync(mut self, force_sync: bool) -> Self {
        self.force_sync = force_sync;
        self
    }

    /// What becomes of background tasks.
    #[must_use]
    pub fn with_background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// Whether somebody answers when a person is asked.
    #[must_use]
    pub fn with_people(mut self, has_people: bool) -> Self {
        self.has_people = has_people;
        self
    }

    /// The deepest agent; more than the session's limit is that limit.
    #[must_use]
    pub fn with_max_depth(mut self, depth: u16) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// Sets how many children execute at once, at least 1; capped by the session's limit.
    #[must_use]
    pub fn with_max_children(mut self, most: usize) -> Self {
        self.max_children = Some(most);
        self
    }

    pub(crate) fn of(cx: &RunContext) -> Self {
        Member::of(cx).map_or_else(|_| Self::default(), |member| member.options)
    }
}

impl From<&RunSettings> for SpawnOptions {
    fn from(settings: &RunSettings) -> Self {
        Self {
            force_sync: settings.force_sync,
            background: settings.background,
            has_people: !settings.unattended,
            max_depth: settings.max_depth,
            max_children: settings.max_children,
        }
    }
}
