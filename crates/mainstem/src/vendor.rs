//! The vendors whose models this build can ask: by what name, and from which settings.

#[cfg(feature = "http")]
mod api;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use mainstem_model::{Breaker, IdleTimeout, Model, ModelError, Retry};

/// A vendor's API, and how its models are set up. [`VENDORS`] are those of this build.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Vendor {
    /// What stands before the colon: `openai` in `openai:gpt-4o-mini`.
    pub name: &'static str,
    /// The variable that holds the key.
    pub key: &'static str,
    /// The variable that names another server than the vendor's own.
    pub base_url: &'static str,
    /// The model of those who name none.
    pub default_model: &'static str,
    /// Returns `true` if a key is enough to know that the vendor is meant; else its server must be
    /// named.
    is_known_by_key: fn() -> bool,
    make: Make,
}

type Make = fn(&str, &Setup<'_>) -> Result<Arc<dyn Model>, ModelError>;

/// What a model is set up from, besides its name.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "made by the holder of the settings")]
pub struct Setup<'a> {
    /// The value of a variable, such as one of the environment.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// Headers of every request.
    pub headers: &'a [(String, String)],
}

impl Vendor {
    /// A model, which retries passing failures, leaves a service alone that fails again and again,
    /// and gives up on silence.
    ///
    /// # Errors
    /// What is missing, or can't be used.
    pub fn model(&self, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
        let model = self.bare_model(name, setup)?;
        Ok(Arc::new(Retry::new(Breaker::new(IdleTimeout::new(model, IDLE)))))
    }

    /// The same model without decorators: a failure is an error at once.
    ///
    /// # Errors
    /// What is missing, or can't be used.
    pub fn bare_model(&self, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
        (self.make)(name, setup)
    }

    /// By which variable it is set up: by that of its key, or that of its server; not at all if
    /// neither is there.
    pub fn is_set_up(&self, var: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        self.set_up_by().find(|name| var(name).is_some())
    }

    /// The variables each of which is enough to set it up, the simplest first.
    pub fn set_up_by(&self) -> impl Iterator<Item = &'static str> + use<> {
        let key = (self.is_known_by_key)().then_some(self.key);
        key.into_iter().chain([self.base_url])
    }

    /// A model's name as people write it: that of its default model.
    pub fn example(&self) -> String {
        format!("{}:{}", self.name, self.default_model)
    }
}

/// The vendor of this name.
pub fn vendor(name: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.name == name)
}

/// Returns the simplest variable that sets up each vendor: `A, B or C`.
pub fn variables() -> String {
    let mut names: Vec<_> = VENDORS.iter().filter_map(|vendor| vendor.set_up_by().next()).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The vendors of this build; of those that are set up, the first is asked by default. OpenAI is
/// there twice: `openai` are its chat completions, which many servers speak, `responses` its newer
/// API, which keeps the reasoning between the calls of a turn.
pub const VENDORS: &[Vendor] = &[
    #[cfg(feature = "openai")]
    Vendor::of::<mainstem_openai::ChatCompletions>("openai", "gpt-4o-mini"),
    #[cfg(feature = "anthropic")]
    Vendor::of::<mainstem_anthropic::Messages>("anthropic", "claude-haiku-4-5"),
    #[cfg(feature = "gemini")]
    Vendor::of::<mainstem_gemini::GenerateContent>("gemini", "gemini-2.5-flash"),
    #[cfg(feature = "ollama")]
    Vendor::of::<mainstem_ollama::Chat>("ollama", "qwen3"),
    #[cfg(feature = "openai")]
    Vendor::of::<mainstem_openai::Responses>("responses", "gpt-4o-mini"),
];

/// The longest silence of a model before its call fails.
const IDLE: Duration = Duration::from_secs(120);

impl fmt::Debug for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vendor").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Setup").field("headers", &headers).finish_non_exhaustive()
    }
}
