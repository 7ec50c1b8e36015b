//! The limiters of a process.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{LazyLock, Mutex, PoisonError},
};

use super::{RateLimiter, RatePolicy};

/// How many limiters without a model are retained, so that a later model starts with what is known
/// of its service.
const UNUSED: usize = 1_024;

/// An account at a service: its address and its key, as a number that reveals neither. Numbers
/// differ from process to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Account(u64);

impl Account {
    /// Returns the account of an address, a key, and any other value that distinguishes accounts.
    pub fn of(parts: impl Hash) -> Self {
        static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(STATE.hash_one(parts))
    }
}

/// A limiter for each model of each account.
///
/// Services count by model and key, so all values of a model with one key share a limiter, in all
/// sessions.
///
/// ```
/// use mainstem_model::{Account, RateLimiters, RatePolicy};
///
/// let limiters = RateLimiters::default();
/// let account = Account::of(("https://api.example.com", "key"));
/// let limiter = limiters.get(account, "small", RatePolicy::default());
/// # let _ = limiter;
/// ```
#[derive(Debug, Default)]
pub struct RateLimiters(Mutex<HashMap<(Account, Box<str>), RateLimiter>>);

impl RateLimiters {
    /// Returns the limiter of a model, which has this policy from now on.
    pub fn get(&self, account: Account, model: &str, policy: RatePolicy) -> RateLimiter {
        let mut limiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limiters.len() >= UNUSED {
            limiters.retain(|_, limiter| limiter.is_used());
        }
        let limiter = limiters.entry((account, model.into())).or_default().clone();
        limiter.set_policy(policy);
        limiter
    }
}

#[cfg(test)]
mod tests {
    //! Which models share a limiter.

    use super::*;

    #[test]
    fn a_model_of_an_account_has_one_limiter() {
        let limiters = RateLimiters::default();
        let get = |key: &str, model| limiters.get(Account::of(key), model, RatePolicy::default());
        let first = get("a", "m");
        assert!(first.is(&get("a", "m")));
        assert!(!first.is(&get("a", "n")));
        assert!(!first.is(&get("b", "m")));
    }

    #[test]
    fn limiters_without_a_model_are_forgotten_when_there_are_many() {
        let limiters = RateLimiters::default();
        let used = limiters.get(Account::of("used"), "m", RatePolicy::default());
        for number in 0..10_000 {
            limiters.get(Account::of(number), "m", RatePolicy::default());
        }
        assert!(limiters.0.lock().unwrap().len() <= UNUSED);
        assert!(used.is(&limiters.get(Account::of("used"), "m", RatePolicy::default())));
    }
}
