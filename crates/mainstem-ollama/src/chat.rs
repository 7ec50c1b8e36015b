//! `POST /api/chat`, of Ollama on a machine or in its cloud.

use std::sync::Arc;

use mainstem_http::{
    Api, ConfigError, Decode, Endpoint, Form, ListedModel, ModelPage, Server, ServerError, Service, Url,
    Variables, extend,
};
use mainstem_model::ModelRequest;
use serde_json::Value;

use crate::{
    decoder::Decoder,
    host::{self, CLOUD},
    request,
};

/// A model that Ollama runs, by default on this machine (`http://127.0.0.1:11434`).
///
/// A base URL has the forms of `OLLAMA_HOST`: a host (`gpu-box`), a port (`:1234`), both, or a URL,
/// perhaps with a path. Without a scheme it is `http` and port 11434, except for `ollama.com`; with
/// one, the port is that of the scheme. `0.0.0.0`, where servers listen, means this machine. A key
/// is for `ollama.com`, or for a proxy that requires a bearer token; it is sent to the configured
/// host. [`OllamaExt`] has a further setting. Dropping a stream makes Ollama stop.
///
/// ```
/// use mainstem_model::Model;
/// use mainstem_ollama::{Ollama, OllamaExt};
///
/// let model = Ollama::new("qwen3").with_base_url("gpu-box:11434")?.with_num_ctx(32_768);
/// assert_eq!(model.name(), "qwen3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Ollama = Endpoint<Chat>;

/// Ollama's own [chat API](https://docs.ollama.com/api/chat).
#[derive(Clone, Debug, Default)]
pub struct Chat {
    pub(crate) num_ctx: Option<u32>,
}

/// The setting of [`Ollama`] that other vendors' models do not have.
///
/// ```
/// use mainstem_ollama::{Ollama, OllamaExt};
///
/// let model = Ollama::new("qwen3").with_num_ctx(32_768);
/// # let _ = model;
/// ```
pub trait OllamaExt: Sized {
    /// Sets the length of the model's context in tokens, its answer included: the option `num_ctx`.
    /// Ollama's [default](https://docs.ollama.com/context-length) is small. A prompt that does not
    /// fit fails with [`ContextOverflow`](mainstem_model::ErrorKind::ContextOverflow); an Ollama
    /// before 0.12.6 drops its oldest messages instead. A longer context takes more memory, and a
    /// model that was loaded with another length is loaded again.
    #[must_use]
    fn with_num_ctx(self, tokens: u32) -> Self;
}

impl OllamaExt for Ollama {
    fn with_num_ctx(self, tokens: u32) -> Self {
        self.with_api(Chat { num_ctx: Some(tokens) })
    }
}

impl Api for Chat {
    const SERVICE: Service =
        Service::new("ollama", "http://127.0.0.1:11434", Variables::new("OLLAMA_API_KEY", "OLLAMA_HOST"))
            .with_key_hosts(&[CLOUD]);
    const RESPONSE_NOUN: &'static str = "Ollama response";
    const FORM: Form = Form::Lines;

    type Dialect = ();

    fn base_url(text: &str) -> Result<Url, ConfigError> {
        host::base_url(text)
    }

    /// Returns the URL of the chat. The URLs of the whole API and of the chat are accepted as base
    /// URLs, too.
    fn url(base: &Url, _: &str) -> Url {
        let mut url = base.clone();
        let path = url.path().trim_end_matches('/');
        if path.ends_with("/api") {
            extend(&mut url, &["chat"]);
        } else if !path.ends_with("/api/chat") {
            extend(&mut url, &["api", "chat"]);
        }
        url
    }

    fn models_url(base: &Url) -> Option<Url> {
        let mut url = Self::url(base, "");
        url.path_segments_mut().ok()?.pop().push("tags");
        Some(url)
    }

    /// Reads the [local models](https://docs.ollama.com/api/tags).
    fn models_page(page: &Value) -> Option<ModelPage> {
        let entries = page.get("models")?.as_array()?;
        let models = entries.iter().filter_map(|entry| ListedModel::read(entry, "name", &[], &[]));
        Some(ModelPage { models: models.collect(), next: None })
    }

    fn body(&self, model: &str, request: &ModelRequest, (): &()) -> Result<Vec<u8>, String> {
        request::body(model, self.num_ctx, request)
    }

    fn decoder(server: Arc<Server>) -> impl Decode {
        Decoder::new(server)
    }

    fn whole(&self, request: &ModelRequest, (): &()) -> Option<Arc<str>> {
        let streams = request.options.extra.get("stream");
        (streams == Some(&Value::Bool(false))).then(|| "`stream` is set to false".into())
    }

    /// Beside tools, a schema [keeps the model from calling
    /// any](https://github.com/ollama/ollama/issues/8095), and models in the cloud [ignore
    /// schemas](https://docs.ollama.com/capabilities/structured-outputs).
    fn can_enforce_schema(&self, model: &str, server: &Server, request: &ModelRequest) -> bool {
        let is_cloud = server.host() == CLOUD || model.ends_with("-cloud") || model.ends_with(":cloud");
        request.tools.is_empty() && !is_cloud
    }

    /// Returns advice for the Ollama on a machine.
    fn advice(model: &str, server: &Server, error: &ServerError) -> Option<String> {
        match error.status {
            _ if server.host() == CLOUD => None,
            // `model 'qwen3' not found`; a wrong path is `404 page not found`.
            Some(404) if error.message.starts_with("model ") => Some(format!("; run `ollama pull {model}`")),
            // It runs models in the cloud for users who are signed in.
            Some(401) if !server.has_key() => Some("; run `ollama signin`".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
