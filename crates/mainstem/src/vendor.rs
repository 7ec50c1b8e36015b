//! The vendors whose models this build can ask: by what name, and from which settings.

use std::{fmt, sync::Arc};

use mainstem_model::{Model, ModelError};

/// A vendor's model from its settings, in its decorators.
#[cfg(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai"))]
macro_rules! make {
    ($vendor:ty, $name:expr, $setup:expr) => {{
        use mainstem_model::{Breaker, IdleTimeout, Retry};

        let mut model = <$vendor>::from_vars($name, $setup.var)?;
        for (name, value) in $setup.headers {
            model = model.with_header(name, value)?;
        }
        Ok(Arc::new(Retry::new(Breaker::new(IdleTimeout::new(model, IDLE)))))
    }};
}
/// A vendor, and how its models are set up. [`VENDORS`] are those of this build.
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
    /// Whether a key is enough to know that the vendor is meant; else its server must be named.
    by_key: bool,
    make: Make,
}

type Make = fn(&str, &Setup<'_>) -> Result<Arc<dyn Model>, ModelError>;

/// What a model is set up from, besides its name.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever keeps settings")]
pub struct Setup<'a> {
    /// The value of a variable, such as one of the environment.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// Headers of every request.
    pub headers: &'a [(String, String)],
}

impl Vendor {
    /// A model, which retries passing failures, leaves a service alone that fails again and again, and gives up on silence.
    ///
    /// # Errors
    /// What is missing, or can't be used.
    pub fn model(&self, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
        (self.make)(name, setup)
    }

    /// By which variable it is set up: by that of its key, or that of its server; not at all if neither is there.
    pub fn is_set_up(&self, var: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        let by_key = self.by_key.then_some(self.key);
        by_key.into_iter().chain([self.base_url]).find(|name| var(name).is_some())
    }
}

/// The vendor of this name.
pub fn vendor(name: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.name == name)
}

/// The vendors of this build; of those that are set up, the first is asked by default. OpenAI is there twice: `openai` are its chat completions,
/// which many servers speak, `responses` its newer API, which keeps the reasoning between the calls of a turn.
pub const VENDORS: &[Vendor] = &[
    #[cfg(feature = "openai")]
    Vendor {
        name: "openai",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        default_model: "gpt-4o-mini",
        by_key: true,
        make: |name, setup| make!(mainstem_openai::OpenAi, name, setup),
    },
    #[cfg(feature = "anthropic")]
    Vendor {
        name: "anthropic",
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        default_model: "claude-haiku-4-5",
        by_key: true,
        make: |name, setup| make!(mainstem_anthropic::Anthropic, name, setup),
    },
    #[cfg(feature = "gemini")]
    Vendor {
        name: "gemini",
        key: "GEMINI_API_KEY",
        base_url: "GEMINI_BASE_URL",
        default_model: "gemini-2.5-flash",
        by_key: true,
        make: |name, setup| make!(mainstem_gemini::Gemini, name, setup),
    },
    #[cfg(feature = "ollama")]
    Vendor {
        name: "ollama",
        key: "OLLAMA_API_KEY",
        base_url: "OLLAMA_HOST",
        default_model: "qwen3",
        by_key: false,
        make: |name, setup| make!(mainstem_ollama::Ollama, name, setup),
    },
    #[cfg(feature = "openai")]
    Vendor {
        name: "responses",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        default_model: "gpt-4o-mini",
        by_key: true,
        make: |name, setup| make!(mainstem_openai::OpenAiResponses, name, setup),
    },
];

/// The longest silence of a model before its call fails.
#[cfg(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai"))]
const IDLE: std::time::Duration = std::time::Duration::from_secs(120);

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
