#![doc = include_str!("../README.md")]
//!
//! * [`Pattern`]: which tool calls a rule is about
//! * [`RuleSet`], [`Rules`]: whether a call runs, needs a person, or is refused; a child's rules
//!   only narrow
//! * [`PlanMode`]: what runs while nothing may change
//! * [`Ledger`]: whether a model call or a spawn still fits its budget, and every budget above
//! * [`Prices`], [`Cost`]: what a model call costs; [`ContextWindows`]: how long its prompt may be
//! * [`Shares`]: which part of a limit each tenant may use
//! * [`Part`]: what of a folder's files needs a person's trust, by a hash of just that
//!
//! # Plan mode
//! ```
//! use mainstem_policy::PlanMode;
//!
//! assert!(PlanMode::On.check("read_file", true).is_ok());
//! assert_eq!(
//!     PlanMode::On.check("write_file", false).unwrap_err().to_string(),
//!     "plan mode: write_file changes things; finish the plan and call plan_exit",
//! );
//! ```
//!
//! # Budgets and prices
//! ```
//! use std::time::Duration;
//! use mainstem_policy::{Amount, Cost, Ledger, Budget, Prices, estimated_usage};
//! use mainstem_message::Usage;
//!
//! let prices = Prices::default();
//! let limits = Budget::default().with_cost(Cost::from_dollars(1));
//! let (mut ledger, session) = Ledger::new("session", limits, Duration::ZERO);
//!
//! let estimate = estimated_usage(8_000, 4_000);
//! let asked = Amount::of(&estimate, prices.cost("openai:gpt-4o", &estimate));
//! let reservation = ledger.reserve(session, asked, Duration::ZERO)?;
//!
//! let usage = Usage::new(2_100, 300);
//! ledger.settle(reservation, Some(Amount::of(&usage, prices.cost("openai:gpt-4o", &usage))));
//! assert_eq!(ledger.tally(session).unwrap().spent.cost.to_string(), "$0.00825");
//! # Ok::<_, mainstem_policy::Exceeded>(())
//! ```

mod budget;
mod command;
mod glob;
pub mod known_models;
mod path;
mod pattern;
mod plan;
mod price;
mod rules;
mod shares;
mod target;
mod trust;
mod url;
mod window;

pub use budget::{
    AccountId, Amount, Budget, Exceeded, Ledger, Reservation, Resource, Spend, Tally, estimated_usage,
};
pub use pattern::{Pattern, PatternError};
pub use plan::{PLAN_TOOLS, PlanMode, PlanRefusal};
pub use price::{Cost, LongPrompt, Price, Prices};
pub use rules::{Because, Decision, Effect, Rule, RuleSet, Rules};
pub use shares::{Share, Shares, Tenant};
pub use trust::{Part, one_line, variables};
pub use window::ContextWindows;
