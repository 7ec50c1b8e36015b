//! How the caller of a run wants its children treated.

use mainstem_event::{Background, RunSettings};
use mainstem_policy::{Effect, RuleSet, Rules};

/// How a run treats its agents. [`Fleet::enter`](crate::Fleet::enter) takes it; an agent without
/// a fleet has the defaults.
///
/// ```
/// use mainstem_subagent::SpawnOptions;
///
/// let options = SpawnOptions::new().with_force_sync(true).with_max_children(4);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpawnOptions {
    /// Whether a call that is out of time stops its child (`status: timeout`) instead of making it
    /// a background task.
    pub force_sync: bool,
    /// What becomes of background tasks when the root has its answer.
    pub background: Background,
    /// Whether a person answers approval requests (default). If not, they are denied, and external
    /// tools fail.
    pub is_attended: bool,
    /// The depth of the deepest agent of the run, if that is below the session's
    /// [`Limits`](crate::Limits).
    pub max_depth: Option<u16>,
    /// How many children of the run execute at once, if that is below the session's
    /// [`Limits`](crate::Limits).
    pub max_children: Option<usize>,
    /// Rules of the run's caller. They narrow those of the agents.
    pub rules: Rules,
}

impl Default for SpawnOptions {
    fn default() -> Self {
        Self {
            force_sync: false,
            background: Background::default(),
            is_attended: true,
            max_depth: None,
            max_children: None,
            rules: Rules::new(),
        }
    }
}

impl SpawnOptions {
    /// Creates the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether calls stop their children when they are out of time.
    #[must_use]
    pub fn with_force_sync(mut self, force_sync: bool) -> Self {
        self.force_sync = force_sync;
        self
    }

    /// Sets what becomes of background tasks.
    #[must_use]
    pub fn with_background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// Sets whether a person answers approval requests.
    #[must_use]
    pub fn with_attended(mut self, is_attended: bool) -> Self {
        self.is_attended = is_attended;
        self
    }

    /// Sets the depth of the deepest agent, capped by the session's limit.
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

    /// Adds rules that narrow those of the agents.
    #[must_use]
    pub fn with_rules(mut self, rules: &Rules) -> Self {
        self.rules = self.rules.narrowed_by(rules);
        self
    }
}

impl From<&RunSettings> for SpawnOptions {
    fn from(settings: &RunSettings) -> Self {
        Self {
            force_sync: settings.force_sync,
            background: settings.background,
            is_attended: !settings.unattended,
            max_depth: settings.max_depth,
            max_children: settings.max_children,
            rules: recorded(settings),
        }
    }
}

/// Returns the recorded rules. Those that this version can't read could deny anything, so every
/// call is denied then.
fn recorded(settings: &RunSettings) -> Rules {
    if settings.permissions.is_null() {
        return Rules::new();
    }
    let read = serde_json::from_value(settings.permissions.clone());
    read.unwrap_or_else(|_| RuleSet::new(Effect::Deny).into())
}
