//! The providers of this build, and how each is configured.

#[cfg(feature = "http")]
mod api;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use mainstem_model::{
    Account, Breaker, Continuation, IdleTimeout, Model, ModelError, RateLimited, RateLimiters, RatePolicy,
    Retry,
};
#[cfg(feature = "openai")]
use mainstem_openai::{ChatCompletions, Responses, service};

/// A provider: the API of a vendor's models, and its configuration. [`PROVIDERS`] are those of this
/// build.
///
/// ```
/// use mainstem::provider::PROVIDERS;
///
/// for provider in PROVIDERS {
///     let variables: Vec<_> = provider.set_up_by().collect();
///     println!("{}: set {}", provider.example(), variables.join(" or "));
/// }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Provider {
    /// Its name, which is before the colon in names of models: `openai` in `openai:gpt-4o-mini`.
    pub name: &'static str,
    /// The variable that holds the key.
    pub key: &'static str,
    /// The variable of the base URL, for a server other than the vendor's own.
    pub base_url: &'static str,
    /// The default model; `None` if it depends on the server.
    pub default_model: Option<&'static str>,
    /// Texts with which names of its models begin, such as `gpt-`: a name without a provider
    /// belongs to the one with the longest. Empty if its models are those of other vendors.
    pub families: &'static [&'static str],
    #[cfg(feature = "http")]
    service: &'static mainstem_http::Service,
    /// The API is that of the provider itself.
    has_own_api: bool,
    /// Returns `true` if a key configures the provider; otherwise a base URL is required.
    is_known_by_key: fn(&Self) -> bool,
    make: Make,
    #[cfg(feature = "http")]
    list: fn(&Self, &Setup<'_>) -> Result<api::ModelList, ModelError>,
}

/// Makes a model, and names the account that its calls are counted for.
type Make = fn(&Provider, &str, &Setup<'_>) -> Result<(Arc<dyn Model>, Account), ModelError>;

/// The settings of a model, besides its name.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "made by the holder of the settings")]
pub struct Setup<'a> {
    /// The value of a variable, such as one of the environment.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// Headers of every request.
    pub headers: &'a [(String, String)],
    /// Limits of the rate of calls, besides those that the service reports. All models of one name
    /// and key in this process share what the service allows; the latest policy is in effect.
    pub rates: RatePolicy,
    /// The longest time without a byte of an answer, after which its call fails and is repeated.
    pub idle_timeout: Duration,
}

impl<'a> Setup<'a> {
    /// Creates a setup without headers and limits of one's own, and with an idle timeout of five
    /// minutes: a model that thinks, or a local one that reads a long prompt, can send nothing for
    /// some minutes.
    pub fn new(var: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { var, headers: &[], rates: RatePolicy::default(), idle_timeout: Duration::from_secs(300) }
    }
}

impl Provider {
    /// Returns a model with retries, a circuit breaker and an idle timeout, whose answers go on
    /// behind the service's limit of their length, and whose calls wait for its limits of their
    /// rate.
    ///
    /// # Errors
    /// If a setting is missing or invalid.
    pub fn model(&self, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
        let (model, account) = (self.make)(self, name, setup)?;
        let breaker = Breaker::new(IdleTimeout::new(model, setup.idle_timeout));
        let limiter = LIMITERS.get(account, name, setup.rates);
        Ok(Arc::new(Retry::new(Continuation::new(RateLimited::new(breaker, limiter)))))
    }

    /// Returns the model without decorators: a failure is an error at once.
    ///
    /// # Errors
    /// If a setting is missing or invalid.
    pub fn bare_model(&self, name: &str, setup: &Setup<'_>) -> Result<Arc<dyn Model>, ModelError> {
        (self.make)(self, name, setup).map(|(model, _)| model)
    }

    /// Returns the variable that configures it, that of its key or of its server; `None` if neither
    /// is set.
    pub fn is_set_up(&self, var: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        self.set_up_by().find(|name| var(name).is_some())
    }

    /// Returns the variables each of which configures it, the simplest first.
    pub fn set_up_by(&self) -> impl Iterator<Item = &'static str> + use<> {
        let key = (self.is_known_by_key)(self).then_some(self.key);
        key.into_iter().chain([self.base_url])
    }

    /// Returns `true` if the API is the provider's own, `false` if it is that of another vendor.
    pub const fn has_own_api(&self) -> bool {
        self.has_own_api
    }

    /// Returns the full name of the default model, such as `openai:gpt-4o-mini`; `None` if the
    /// provider has no default model.
    pub fn default_name(&self) -> Option<String> {
        self.default_model.map(|model| format!("{}:{model}", self.name))
    }

    /// Returns an example of a full name: that of the default model, else `azure:…`.
    pub fn example(&self) -> String {
        format!("{}:{}", self.name, self.default_model.unwrap_or("…"))
    }
}

/// Returns the provider with this name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Returns the simplest variable of each provider with an API of its own, as text: `A, B or C`.
pub fn variables() -> String {
    let providers = PROVIDERS.iter().filter(|provider| provider.has_own_api());
    let mut names: Vec<_> = providers.filter_map(|provider| provider.set_up_by().next()).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The providers of this build. The first one that is configured, and has a default model, is the
/// default. OpenAI has two: `openai` is its chat completions API, which many servers implement, and
/// `responses` its newer API, which preserves reasoning between the model calls of a turn. The rows
/// after it are other services that offer one of the two.
pub const PROVIDERS: &[Provider] = &[
    #[cfg(feature = "openai")]
    Provider::of::<ChatCompletions>("openai")
        .with_default("gpt-4o-mini")
        .with_families(&["gpt-", "chatgpt-", "ft:", "o1", "o3", "o4-"]),
    #[cfg(feature = "anthropic")]
    Provider::of::<mainstem_anthropic::Messages>("anthropic")
        .with_default("claude-haiku-4-5")
        .with_families(&["claude-"]),
    #[cfg(feature = "gemini")]
    Provider::of::<mainstem_gemini::GenerateContent>("gemini")
        .with_default("gemini-2.5-flash")
        .with_families(&["gemini-", "gemma-"]),
    #[cfg(feature = "ollama")]
    Provider::of::<mainstem_ollama::Chat>("ollama").with_default("qwen3").with_families(&[
        "qwen",
        "llama",
        "gemma",
        "gpt-oss",
        "phi3",
        "phi4",
        "granite",
        "deepseek-r1",
    ]),
    #[cfg(feature = "openai")]
    Provider::of::<Responses>("responses").with_default("gpt-4o-mini").with_families(RESPONSES_ONLY),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("openrouter", &service::OPENROUTER)
        .with_default("openrouter/auto")
        .with_families(&["openrouter/", "openai/", "anthropic/", "google/", "meta-llama/", "x-ai/"]),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("groq", &service::GROQ)
        .with_default("openai/gpt-oss-120b")
        .with_families(&["llama-"]),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("deepseek", &service::DEEPSEEK)
        .with_default("deepseek-flash")
        .with_families(&["deepseek-"]),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("mistral", &service::MISTRAL)
        .with_default("mistral-medium-latest")
        .with_families(&["mistral-", "ministral-", "magistral-", "codestral-", "devstral-", "pixtral-"]),
    #[cfg(feature = "openai")]
    Provider::at::<Responses>("xai", &service::XAI).with_default("grok-4.5").with_families(&["grok-"]),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("together", &service::TOGETHER).with_default("openai/gpt-oss-20b"),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("azure", &service::AZURE),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("vllm", &service::VLLM),
    #[cfg(feature = "openai")]
    Provider::at::<ChatCompletions>("lmstudio", &service::LMSTUDIO),
];

/// Models of OpenAI that its documentation offers by the Responses API only.
#[cfg(feature = "openai")]
const RESPONSES_ONLY: &[&str] = &[
    "codex-",
    "gpt-5-codex",
    "gpt-5.1-codex",
    "gpt-5.2-codex",
    "gpt-5.3-codex",
    "gpt-5-pro",
    "gpt-5.2-pro",
    "gpt-5.4-pro",
    "gpt-5.5-pro",
    "o1-pro",
    "o3-pro",
];

/// The limiters of all models of this process: services count by key, not by session.
static LIMITERS: LazyLock<RateLimiters> = LazyLock::new(RateLimiters::default);

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Setup").field("headers", &headers).finish_non_exhaustive()
    }
}
