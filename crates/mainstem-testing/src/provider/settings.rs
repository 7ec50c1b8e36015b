//! Settings from each source, and their `Debug`.

use mainstem_http::{Api, ConfigError, Endpoint, Variables};
use mainstem_model::Model;

use super::Sample;

fn from_vars<A: Api>(vars: &[(&str, &str)]) -> Result<Endpoint<A>, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Endpoint::from_vars("m", var)
}

/// The variables of the API hold key and base URL; the vendor's own service requires a key.
pub fn the_environment_is_read<A: Api>(_: Sample) {
    let Variables { key, base_url, .. } = A::SERVICE.variables;
    let model = from_vars::<A>(&[(key, " sk-12345678\n")]).unwrap();
    assert!(model.server().has_key());
    assert_eq!((model.name(), model.provider()), ("m", Some(A::SERVICE.provider)));
    let headers = model.server().headers().unwrap();
    let sent = |value: &str| ["sk-12345678", "Bearer sk-12345678"].contains(&value);
    assert_eq!(headers.values().filter(|value| sent(value.to_str().unwrap())).count(), 1, "{headers:?}");

    let local = from_vars::<A>(&[(base_url, " http://localhost:1\n"), (key, "")]).unwrap();
    assert_eq!((local.server().host(), local.server().has_key()), ("localhost:1", false));
    assert!(matches!(from_vars::<A>(&[(base_url, "ftp://h")]), Err(ConfigError::BaseUrl { .. })));
    if A::SERVICE.is_key_required(Endpoint::<A>::new("m").server().host()) {
        let error = from_vars::<A>(&[(base_url, " ")]).unwrap_err().to_string();
        let fix = format!("{key} is not set; set it, or set {base_url} to a server that needs no key");
        assert_eq!(error, fix);
    }
}

/// `Debug` shows the model and the server, without key, token and headers.
pub fn a_model_shows_no_secrets_and_can_be_sent<A: Api>(_: Sample) {
    fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
    let model =
        Endpoint::<A>::new("a-model").with_api_key("k-secret").with_header("x-key", "h-secret").unwrap();
    check(&model);
    let shown = format!("{model:?} {:?}", model.clone().with_auth_token("t-secret"));
    assert!(shown.contains("a-model") && shown.contains(model.server().host()), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
}
