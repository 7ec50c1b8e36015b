//! What both values can be set to, written once: they differ in the endpoint and in the dialects of their servers.

/// The settings of a model made of `name`, `server`, `http`, `whole`, `holds_schema` and `dialect`; `$endpoint` finds its API below a
/// base URL.
macro_rules! settings {
    ($model:ident, $dialect:ident, $endpoint:path) => {
        impl $model {
            /// The same as [`new`](Self::new), with what OpenAI's own libraries read from the environment: `OPENAI_API_KEY`,
            /// `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID`.
            ///
            /// # Errors
            /// Without a key, unless the base URL names another server than OpenAI's; and where a value cannot be used.
            pub fn from_env(model: impl Into<::std::sync::Arc<str>>) -> Result<Self, $crate::ConfigError> {
                Self::from_vars(model, |name| ::std::env::var(name).ok())
            }

            /// The same with variables from elsewhere, such as a program's own configuration.
            ///
            /// # Errors
            /// The same as for [`from_env`](Self::from_env).
            pub fn from_vars(
                model: impl Into<::std::sync::Arc<str>>,
                var: impl Fn(&str) -> Option<String>,
            ) -> Result<Self, $crate::ConfigError> {
                let var = |name| ::mainstem_http::trimmed(&var, name);
                let mut openai = Self::new(model);
                if let Some(url) = var("OPENAI_BASE_URL") {
                    openai = openai.with_base_url(&url)?;
                }
                if let Some(organization) = var("OPENAI_ORG_ID") {
                    openai = openai.with_organization(&organization)?;
                }
                if let Some(project) = var("OPENAI_PROJECT_ID") {
                    openai = openai.with_project(&project)?;
                }
                match var("OPENAI_API_KEY") {
                    Some(key) => Ok(openai.with_api_key(key)),
                    None if $crate::server::is_openai(&openai.server) => Err($crate::ConfigError::NoKey {
                        variable: "OPENAI_API_KEY",
                        instead: Some("OPENAI_BASE_URL"),
                    }),
                    None => Ok(openai),
                }
            }

            /// Another model of the same server, with the same key, over the same connections.
            #[must_use]
            pub fn with_model(self, model: impl Into<::std::sync::Arc<str>>) -> Self {
                let Self { server, http, whole, holds_schema, .. } = self;
                let fresh = Self::at(model.into(), (*server).clone());
                Self { server, http, whole, holds_schema, ..fresh }
            }

            /// The key. It is never shown, and taken out of what a server says about it.
            #[must_use]
            pub fn with_api_key(mut self, key: impl Into<::mainstem_http::SecretString>) -> Self {
                let auth = self.server.auth();
                ::std::sync::Arc::make_mut(&mut self.server).set_key(key.into(), auth);
                self
            }

            /// Another server: the URL up to and with `/v1`. A trailing slash is fine, and so is the address of the whole endpoint.
            ///
            /// # Errors
            /// Where it is no http(s) URL.
            pub fn with_base_url(self, url: &str) -> Result<Self, $crate::ConfigError> {
                let Self { name, server, http, whole, holds_schema, .. } = self;
                let mut server = (*server).clone();
                server.set_url($endpoint(url)?);
                Ok(Self { http, whole, holds_schema, ..Self::at(name, server) })
            }

            /// A header of every request; one named `authorization` replaces the key. Values are never shown.
            ///
            /// # Errors
            /// Where HTTP does not allow the name or the value.
            pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, $crate::ConfigError> {
                ::std::sync::Arc::make_mut(&mut self.server).set_header(name, value)?;
                Ok(self)
            }

            /// The organization that pays.
            ///
            /// # Errors
            /// Where HTTP does not allow the value.
            pub fn with_organization(self, organization: &str) -> Result<Self, $crate::ConfigError> {
                self.with_header("openai-organization", organization)
            }

            /// The project that pays.
            ///
            /// # Errors
            /// Where HTTP does not allow the value.
            pub fn with_project(self, project: &str) -> Result<Self, $crate::ConfigError> {
                self.with_header("openai-project", project)
            }

            /// Sends requests through a client of one's own: for a proxy, certificates, a limit. Ours connects within 10 s, sets
            /// `TCP_NODELAY`, follows no redirects and asks for no compression, which would hold deltas back.
            #[must_use]
            pub fn with_client(mut self, client: ::mainstem_http::Client) -> Self {
                self.http = ::std::sync::Arc::new(::mainstem_http::Http::with(client));
                self
            }

            /// Whether the server holds answers to a JSON schema, besides tools. OpenAI does; of others it is not assumed, and a form
            /// is asked for as the arguments of a tool.
            #[must_use]
            pub fn with_json_schema(mut self, holds_schema: bool) -> Self {
                self.holds_schema = Some(holds_schema);
                self
            }

            /// Asks for answers in one piece, for a server that cannot stream. Each says so with the reason.
            #[must_use]
            pub fn without_streaming(mut self, reason: impl Into<::std::sync::Arc<str>>) -> Self {
                self.whole = Some(reason.into());
                self
            }

            /// What was set, and what was found out about the server so far.
            pub(crate) fn dialect(&self) -> $dialect {
                let learned =
                    self.dialect.lock().unwrap_or_else(::std::sync::PoisonError::into_inner).clone();
                $dialect { whole: self.whole.clone().or(learned.whole), ..learned }
            }

            pub(crate) fn learn(&self, dialect: &$dialect) {
                self.dialect.lock().unwrap_or_else(::std::sync::PoisonError::into_inner).clone_from(dialect);
            }
        }

        impl ::std::fmt::Debug for $model {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($model))
                    .field("model", &self.name)
                    .field("server", &self.server)
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use settings;
