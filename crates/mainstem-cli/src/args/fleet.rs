//! How far agents may go: flags, and `[limits]` of a configuration file.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    time::Duration,
};

use clap::Args;
use mainstem::HarnessBuilder;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::duration;

/// Limits of the fleet; what is absent is as the harness has it.
#[derive(Args, Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FleetLimits {
    /// Let agents exist down to depth N; the one that runs is at 0, its children at 1 [default: 3].
    #[arg(id = "max_agent_depth", long = "max-agent-depth", value_name = "N", help_heading = "Limits")]
    pub(crate) max_depth: Option<u16>,
    /// Let at most N children work at once; more wait for their turn [default: 16].
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_children: Option<NonZeroUsize>,
    /// Let there be at most N background tasks at once; more are refused [default: 16].
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_tasks: Option<usize>,
    /// How long an agent waits for its child, unless it says otherwise; then the child goes on in the background [default: 30s].
    #[arg(long = "child-wait", value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    #[serde(deserialize_with = "time")]
    pub(crate) wait: Option<Duration>,
    /// End a child from which no event comes for this long [default: 10m].
    #[arg(long = "idle-timeout", value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    #[serde(deserialize_with = "time")]
    pub(crate) idle: Option<Duration>,
}

impl FleetLimits {
    /// Fills unset values from `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            max_depth: self.max_depth.or(others.max_depth),
            max_children: self.max_children.or(others.max_children),
            max_tasks: self.max_tasks.or(others.max_tasks),
            wait: self.wait.or(others.wait),
            idle: self.idle.or(others.idle),
        }
    }

    /// These, as far as they don't go beyond the others.
    pub(crate) fn within(self, others: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            max_depth: least(self.max_depth, others.max_depth),
            max_children: least(self.max_children, others.max_children),
            max_tasks: least(self.max_tasks, others.max_tasks),
            wait: least(self.wait, others.wait),
            idle: least(self.idle, others.idle),
        }
    }

    /// A harness with these limits.
    pub(crate) fn on(self, mut harness: HarnessBuilder) -> HarnessBuilder {
        let Self { max_depth, max_children, max_tasks, wait, idle } = self;
        harness = max_depth.into_iter().fold(harness, HarnessBuilder::with_max_depth);
        harness =
            max_children.map(NonZeroUsize::get).into_iter().fold(harness, HarnessBuilder::with_max_children);
        harness = max_tasks.into_iter().fold(harness, HarnessBuilder::with_max_tasks);
        harness = wait.into_iter().fold(harness, HarnessBuilder::with_wait);
        idle.into_iter().fold(harness, HarnessBuilder::with_idle_timeout)
    }
}

/// A time as `"90s"`, or as a number of seconds.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a time, such as \"90s\" or a number of seconds")]
    enum Time {
        Seconds(NonZeroU64),
        Text(String),
    }
    match Time::deserialize(deserializer)? {
        Time::Seconds(seconds) => Ok(Some(Duration::from_secs(seconds.get()))),
        Time::Text(text) => duration(&text).map(Some).map_err(D::Error::custom),
    }
}
