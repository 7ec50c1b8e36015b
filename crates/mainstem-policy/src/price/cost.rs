//! Money.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MICROS: u64 = 1_000_000;

/// An amount of US dollars, in millionths. Sums saturate.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Zero dollars.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of millionths of a dollar.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Creates an amount of whole dollars.
    #[must_use]
    pub const fn from_dollars(dollars: u64) -> Self {
        Self(dollars.saturating_mul(MICROS))
    }

    /// Returns the amount in millionths of a dollar.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

/// Shows the exact amount, with at least two decimals: `$1.50`, `$0.0123`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = format!("${}.{:06}", self.0 / MICROS, self.0 % MICROS);
        let at_least = exact.len() - 4;
        let zeros = exact.len() - exact.trim_end_matches('0').len();
        f.pad(&exact[..(exact.len() - zeros).max(at_least)])
    }
}
