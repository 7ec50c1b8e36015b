//! One address of a client, and how a task is posted to it.

use std::{fmt, sync::OnceLock, time::Duration};

use mainstem_a2a::sdk::{AuthenticationInfo, TaskPushNotificationConfig};
use mainstem_outbound::{OutOfReach, Reach, builder};
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde_json::Value;
use tokio::time::sleep;

use super::super::rest::JSON;

/// The header that has the client's token.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

/// How often a notification is posted, and how long after a failure; the time doubles.
const ATTEMPTS: u32 = 4;
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a client may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest address, in bytes.
const MAX_URL: usize = 2 << 10;

/// Posts to addresses within a reach.
pub(super) struct Poster {
    reach: Reach,
    /// Created when it is needed first.
    client: OnceLock<Client>,
}

impl Poster {
    pub(super) fn new(reach: Reach) -> Self {
        Self { reach, client: OnceLock::new() }
    }

    /// Returns the client, which all addresses share.
    fn client(&self) -> Result<Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = builder().timeout(TIMEOUT).redirect(Policy::none());
        let client = self.reach.limit(client).build().map_err(|_| "TLS is not available".to_owned())?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

/// A configuration. Dropping it ends nothing at the client.
pub(in super::super) struct Webhook {
    config: TaskPushNotificationConfig,
    url: Url,
    headers: HeaderMap,
    client: Client,
}

impl Webhook {
    /// Creates it from a client's configuration, which has an id.
    ///
    /// # Errors
    /// The address is not valid or out of reach, or a value is not valid in a header.
    pub(super) fn new(config: TaskPushNotificationConfig, poster: &Poster) -> Result<Self, String> {
        let url = Some(&*config.url).filter(|url| url.len() <= MAX_URL).and_then(|url| Url::parse(url).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("`url` is not an address that begins with http:// or https://")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("`url` has a user or a password; use `authentication`".to_owned());
        }
        poster
            .reach
            .check(&url)
            .map_err(|error| format!("`url` is out of reach: {} is not public", error.host))?;
        let headers = headers(&config)?;
        Ok(Self { config, url, headers, client: poster.client()? })
    }

    pub(super) fn id(&self) -> &str {
        self.config.id.as_deref().unwrap_or_default()
    }

    /// Returns the configuration as clients read it: without credentials.
    pub(super) fn shown(&self, task: &str) -> TaskPushNotificationConfig {
        let authentication = self.config.authentication.as_ref();
        let authentication = authentication
            .map(|given| AuthenticationInfo { scheme: given.scheme.clone(), credentials: None });
        TaskPushNotificationConfig { task_id: task.to_owned(), authentication, ..self.config.clone() }
    }

    /// Posts an update. One that can't be delivered is logged: the next one has all of the task.
    pub(super) async fn post(&self, update: &Value) {
        let mut interval = INTERVAL;
        for attempt in 1..=ATTEMPTS {
            let request = self.client.post(self.url.clone()).headers(self.headers.clone());
            match request.body(update.to_string()).send().await.and_then(|answer| answer.error_for_status()) {
                Ok(_) => return,
                Err(error) if attempt == ATTEMPTS || is_final(&error) => {
                    let error = error.without_url();
                    tracing::warn!(%error, attempt, "a push notification was not delivered");
                    return;
                }
                Err(_) => sleep(interval).await,
            }
            interval *= 2;
        }
    }
}

/// Returns `true` if another attempt would fail in the same way.
fn is_final(error: &reqwest::Error) -> bool {
    OutOfReach::is_cause_of(error)
        || error
            .status()
            .is_some_and(|status| status.is_client_error() && !matches!(status.as_u16(), 408 | 429))
}

fn headers(config: &TaskPushNotificationConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
    let mut add = |name: HeaderName, value: &str, what: &str| {
        let valid = HeaderValue::try_from(value).map_err(|_| format!("{what} is not valid in a header"));
        valid.map(|mut value| {
            value.set_sensitive(true);
            headers.insert(name, value);
        })
    };
    if let Some(token) = config.token.as_deref().filter(|token| !token.is_empty()) {
        add(TOKEN, token, "`token`")?;
    }
    if let Some(AuthenticationInfo { scheme, credentials: Some(credentials) }) = &config.authentication {
        add(AUTHORIZATION, &format!("{scheme} {credentials}"), "`authentication`")?;
    }
    Ok(headers)
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Addresses that only their names hide.

    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_not_posted_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}/hook", listener.local_addr().unwrap().port());
        let config = |url: &str| {
            serde_json::from_value(serde_json::json!({ "id": "1", "taskId": "t", "url": url })).unwrap()
        };
        let poster = Poster::new(Reach::public());
        let refused = Webhook::new(config("http://127.0.0.1/hook"), &poster).unwrap_err();
        assert_eq!(refused, "`url` is out of reach: 127.0.0.1 is not public");
        let webhook = Webhook::new(config(&url), &poster).unwrap();
        let error = webhook.client.post(webhook.url.clone()).send().await.unwrap_err();
        assert!(OutOfReach::is_cause_of(&error) && is_final(&error), "{error:?}");
    }
}
