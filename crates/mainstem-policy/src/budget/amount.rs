//! Reserved and spent amounts, and their sums.

use mainstem_message::Usage;

use crate::Cost;

/// Tokens, money and spawns of one model call or one spawn, estimated or actual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Tokens in and out.
    pub tokens: u64,
    /// Money; `None` if the model's price is unknown, which a cost budget refuses.
    pub cost: Option<Cost>,
    /// Agents started.
    pub spawns: u64,
}

/// A sum of [amounts](Amount).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spend {
    /// Tokens in and out.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Agents started.
    pub spawns: u64,
}

/// The totals of one account, with all accounts below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// The spent amount.
    pub spent: Spend,
    /// The amount reserved for running calls.
    pub held: Spend,
    /// The part of `spent` that is an estimate, because no usage came back.
    pub estimated: Spend,
    /// The number of calls of unknown price, whose cost is not in `spent`.
    pub unpriced: u64,
}

/// Estimates the usage of a model call: a token for four bytes of request, and the whole output
/// that it may write. The actual usage replaces it later.
#[must_use]
pub fn estimated_usage(request_bytes: u64, max_output_tokens: u64) -> Usage {
    Usage::new(request_bytes.div_ceil(4), max_output_tokens)
}

impl Amount {
    /// Creates the amount of a model call, with its cost if the price is known.
    #[must_use]
    pub fn of(usage: &Usage, cost: Option<Cost>) -> Self {
        Self { tokens: usage.total_tokens(), cost, spawns: 0 }
    }

    /// Creates an amount of tokens without cost.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens, cost: Some(Cost::ZERO), spawns: 0 }
    }

    /// Creates the amount of one spawn.
    #[must_use]
    pub fn spawn() -> Self {
        Self { spawns: 1, ..Self::tokens(0) }
    }

    pub(super) fn known(&self) -> Spend {
        Spend { tokens: self.tokens, cost: self.cost.unwrap_or(Cost::ZERO), spawns: self.spawns }
    }
}

impl Tally {
    pub(super) fn hold(&mut self, amount: &Amount) {
        self.held = self.held.plus(amount.known());
    }

    pub(super) fn give_back(&mut self, amount: &Amount) {
        self.held = self.held.minus(amount.known());
    }

    /// Adds the actual amount; in place of it, or of a cost that it lacks, the estimate.
    pub(super) fn spend(&mut self, estimate: &Amount, actual: Option<Amount>) {
        let cost = actual.map_or(estimate.cost, |actual| actual.cost.or(estimate.cost));
        let spent = Spend { cost: cost.unwrap_or(Cost::ZERO), ..actual.unwrap_or(*estimate).known() };
        let guessed = match actual {
            None => spent,
            Some(Amount { cost: None, .. }) => Spend { cost: spent.cost, ..Spend::default() },
            Some(_) => Spend::default(),
        };
        self.spent = self.spent.plus(spent);
        self.estimated = self.estimated.plus(guessed);
        self.unpriced = self.unpriced.saturating_add(u64::from(cost.is_none()));
    }
}

impl Spend {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
            spawns: self.spawns.saturating_add(other.spawns),
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: Cost::from_micros(self.cost.micros().saturating_sub(other.cost.micros())),
            spawns: self.spawns.saturating_sub(other.spawns),
        }
    }
}
