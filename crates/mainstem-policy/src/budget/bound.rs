//! Budget of accounts, and the errors beyond them.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Spend, Tally};
use crate::Cost;

/// The limits of an account; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Agents started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawns: Option<u64>,
    /// Seconds after the opening of the account until reservations are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_seconds: Option<u64>,
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resource {
    /// Tokens in and out.
    Tokens,
    /// Money; quantities are micro-dollars.
    Cost,
    /// Agents started.
    Spawns,
    /// Time; quantities are seconds.
    Time,
}

/// Why nothing was reserved; a text for models and people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exceeded {
    /// The request exceeds what is left.
    #[error("the {resource} budget of {budget} has {} of {} left, {} asked for", .resource.shown(*.left), .resource.shown(*.limit), .resource.shown(*.asked))]
    #[non_exhaustive]
    Limit {
        /// The label of the account.
        budget: String,
        /// The resource, which determines the unit of the other fields.
        resource: Resource,
        /// The limit.
        limit: u64,
        /// What is neither spent nor reserved.
        left: u64,
        /// The requested quantity.
        asked: u64,
    },
    /// The time is up.
    #[error("the time budget of {budget} is used up: it had {limit_seconds} s")]
    #[non_exhaustive]
    Time {
        /// The label of the account.
        budget: String,
        /// The limit, in seconds.
        limit_seconds: u64,
    },
    /// The account has a cost budget, and the cost of the call is unknown.
    #[error(
        "the cost budget of {budget} has {left} left, and the model's price is unknown: set it in `[prices]`, or with `Prices`"
    )]
    #[non_exhaustive]
    Unpriced {
        /// The label of the account.
        budget: String,
        /// What is neither spent nor reserved.
        left: Cost,
    },
    /// The account is closed, or one above it.
    #[error("the budget is closed, because its agent has ended")]
    Closed,
}

impl Budget {
    /// Sets the most tokens.
    ///
    /// ```
    /// use mainstem_policy::Budget;
    ///
    /// let of_session = Budget::default().with_tokens(200_000).with_time_seconds(600);
    /// let of_run = Budget::default().with_tokens(20_000);
    /// assert_eq!(of_session.tighter(of_run).tokens, Some(20_000));
    /// ```
    #[must_use]
    pub fn with_tokens(self, tokens: u64) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Sets the most money.
    #[must_use]
    pub fn with_cost(self, cost: Cost) -> Self {
        Self { cost: Some(cost), ..self }
    }

    /// Limits the number of spawns.
    #[must_use]
    pub fn with_spawns(self, spawns: u64) -> Self {
        Self { spawns: Some(spawns), ..self }
    }

    /// Sets the most time, in seconds.
    #[must_use]
    pub fn with_time_seconds(self, seconds: u64) -> Self {
        Self { time_seconds: Some(seconds), ..self }
    }

    /// Returns the smaller one of each limit.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        Self {
            tokens: smaller(self.tokens, other.tokens),
            cost: smaller(self.cost, other.cost),
            spawns: smaller(self.spawns, other.spawns),
            time_seconds: smaller(self.time_seconds, other.time_seconds),
        }
    }

    pub(super) fn left(&self, tally: &Tally, elapsed: Duration) -> Self {
        let left = self.unspent(tally);
        let time = |seconds| Duration::from_secs(seconds).saturating_sub(elapsed).as_secs();
        Self {
            tokens: self.tokens.map(|_| left.tokens),
            cost: self.cost.map(|_| left.cost),
            spawns: self.spawns.map(|_| left.spawns),
            time_seconds: self.time_seconds.map(time),
        }
    }

    pub(super) fn check(
        &self,
        budget: &str,
        tally: &Tally,
        elapsed: Duration,
        amount: &Amount,
    ) -> Result<(), Exceeded> {
        let budget = || budget.to_owned();
        if let Some(limit_seconds) = self.time_seconds.filter(|limit| elapsed >= Duration::from_secs(*limit))
        {
            return Err(Exceeded::Time { budget: budget(), limit_seconds });
        }
        let (limit, left, asked) = (self.or_most(), self.unspent(tally), amount.known());
        if self.cost.is_some() && amount.cost.is_none() {
            return Err(Exceeded::Unpriced { budget: budget(), left: left.cost });
        }
        let resources = [
            (Resource::Tokens, limit.tokens, left.tokens, asked.tokens),
            (Resource::Cost, limit.cost.micros(), left.cost.micros(), asked.cost.micros()),
            (Resource::Spawns, limit.spawns, left.spawns, asked.spawns),
        ];
        let short = resources.into_iter().find(|(_, _, left, asked)| asked > left);
        short.map_or(Ok(()), |(resource, limit, left, asked)| {
            Err(Exceeded::Limit { budget: budget(), resource, limit, left, asked })
        })
    }

    fn unspent(&self, tally: &Tally) -> Spend {
        self.or_most().minus(tally.spent.plus(tally.held))
    }

    /// Returns the limits as amounts; the maximum for those that are unlimited.
    fn or_most(&self) -> Spend {
        Spend {
            tokens: self.tokens.unwrap_or(u64::MAX),
            cost: self.cost.unwrap_or(Cost::from_micros(u64::MAX)),
            spawns: self.spawns.unwrap_or(u64::MAX),
        }
    }
}

impl Exceeded {
    /// Returns the exhausted resource; `None` if the account is closed.
    #[must_use]
    pub fn resource(&self) -> Option<Resource> {
        match self {
            Self::Limit { resource, .. } => Some(*resource),
            Self::Time { .. } => Some(Resource::Time),
            Self::Unpriced { .. } => Some(Resource::Cost),
            Self::Closed => None,
        }
    }
}

impl Resource {
    fn shown(self, quantity: u64) -> String {
        match self {
            Self::Cost => Cost::from_micros(quantity).to_string(),
            Self::Tokens | Self::Spawns | Self::Time => quantity.to_string(),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tokens => "token",
            Self::Cost => "cost",
            Self::Spawns => "spawn",
            Self::Time => "time",
        })
    }
}
