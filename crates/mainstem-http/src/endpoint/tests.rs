//! Settings from each source, of a minimal API.

use super::*;
use crate::{Decode, Deltas, Form, ServerError, Variables, extend};
use mainstem_model::{ModelError, message::Usage};

/// Its models are below `/models`, and an error `louder` makes it shout.
#[derive(Clone, Debug, Default)]
struct Echo;

#[derive(Clone, Debug, Default, PartialEq)]
struct Voice {
    is_loud: bool,
}

impl Dialect for Voice {
    fn of(service: &Service, host: &str) -> Self {
        Self { is_loud: host == "loud" || service.provider == "shout" }
    }

    fn adapted_to(&self, error: &ServerError) -> Option<Self> {
        (!self.is_loud && error.message == "louder").then_some(Self { is_loud: true })
    }
}

struct Silence;

impl Decode for Silence {
    fn decode(&mut self, _: &str, _: &mut Deltas) -> Result<(), ModelError> {
        Ok(())
    }

    fn decode_whole(&mut self, _: &str, _: &mut Deltas) -> Result<(), ModelError> {
        Ok(())
    }

    fn usage(&mut self) -> Option<Usage> {
        None
    }

    fn is_done(&self) -> bool {
        true
    }

    fn finish(&mut self, _: &mut Deltas) -> Result<(), ModelError> {
        Ok(())
    }
}

const VARIABLES: Variables = Variables {
    other_key: Some("OTHER_KEY"),
    other_base_url: Some("OTHER_URL"),
    token: Some("TOKEN"),
    headers: &[("TEAM", "x-team")],
    ..Variables::new("KEY", "URL")
};

/// Another service with the same API, where each user has an address.
const SHOUT: Service = Service {
    base_url: None,
    path: "v2",
    ..Service::new("shout", "", Variables::new("SHOUT_KEY", "SHOUT_URL")).with_key_hosts(&["shout.example"])
};

impl Api for Echo {
    const SERVICE: Service = Service {
        headers: &[("x-version", "1")],
        ..Service::new("echo", "https://echo.example", VARIABLES)
            .with_key_hosts(&["echo.example"])
            .with_key_header("x-key")
    };
    const RESPONSE_NOUN: &'static str = "echo";
    const FORM: Form = Form::Lines;

    type Dialect = Voice;

    fn url(base: &Url, model: &str) -> Url {
        let mut url = base.clone();
        extend(&mut url, &["models", model]);
        url
    }

    fn body(&self, model: &str, _: &ModelRequest, _: &Voice) -> Result<Vec<u8>, String> {
        Ok(model.as_bytes().to_owned())
    }

    fn decoder(_: Arc<Server>) -> impl Decode {
        Silence
    }
}

fn from_vars(vars: &[(&str, &str)]) -> Result<Endpoint<Echo>, ConfigError> {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    Endpoint::from_vars("m", var)
}

/// Returns the address, and the headers in order of their names.
fn shown(endpoint: &Endpoint<Echo>) -> String {
    let headers = endpoint.server().headers().unwrap();
    let mut lines: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    lines.sort_unstable();
    format!("{} {}", endpoint.server().url(), lines.join(", "))
}

#[test]
fn the_environment_is_read() {
    let check = |vars: &[(&str, &str)], expected: &str| match from_vars(vars) {
        Ok(endpoint) => assert_eq!(shown(&endpoint), expected, "{vars:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{vars:?}"),
    };
    let own = "https://echo.example/models/m";
    check(&[("KEY", " k\n"), ("OTHER_KEY", "o"), ("TOKEN", "t")], &format!("{own} x-key: k, x-version: 1"));
    check(&[("KEY", ""), ("OTHER_KEY", "o")], &format!("{own} x-key: o, x-version: 1"));
    check(&[("TOKEN", "t")], &format!("{own} authorization: Bearer t, x-version: 1"));
    check(&[("URL", "http://a/"), ("OTHER_URL", "http://b")], "http://a/models/m x-version: 1");
    check(&[("OTHER_URL", "http://b"), ("TEAM", "t")], "http://b/models/m x-team: t, x-version: 1");
    check(&[("KEY", " ")], "KEY is not set; set it, or set URL to a server that needs no key");
    check(
        &[("TEAM", "a\nb")],
        "the header \"x-team\" can't be sent: its value has characters that no header may have, such as a line break",
    );
    assert!(matches!(from_vars(&[("URL", "h")]), Err(ConfigError::BaseUrl { .. })));
}

#[test]
fn another_service_has_its_own_address_and_variables() {
    let check = |vars: &[(&str, &str)], expected: &str| {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        match Endpoint::<Echo>::of_service(&SHOUT, "m", var) {
            Ok(endpoint) => {
                assert_eq!(shown(&endpoint), expected, "{vars:?}");
                assert_eq!(endpoint.provider(), Some("shout"));
                assert!(endpoint.dialect().is_loud, "known of the service");
                assert!(endpoint.with_model("n").dialect().is_loud);
            }
            Err(error) => assert_eq!(error.to_string(), expected, "{vars:?}"),
        }
    };
    let own = ("SHOUT_URL", "https://me.shout.example");
    check(
        &[own, ("SHOUT_KEY", "k"), ("KEY", "o")],
        "https://me.shout.example/v2/models/m authorization: Bearer k",
    );
    check(&[own], "SHOUT_KEY is not set; set it, or set SHOUT_URL to a server that needs no key");
    check(&[("SHOUT_URL", "http://h/v3/")], "http://h/v3/models/m ");
    check(&[("SHOUT_KEY", "k")], "SHOUT_URL is not set; set it to the address of your resource");
}

#[test]
fn a_key_and_a_token_replace_each_other() {
    let endpoint = Endpoint::<Echo>::new("m").with_auth_token("t").with_api_key("k");
    assert_eq!(shown(&endpoint), "https://echo.example/models/m x-key: k, x-version: 1");
    let token = endpoint.clone().with_auth_token("t");
    assert_eq!(shown(&token), "https://echo.example/models/m authorization: Bearer t, x-version: 1");
    let elsewhere = endpoint.with_key_header("api-key");
    assert_eq!(shown(&elsewhere), "https://echo.example/models/m api-key: k, x-version: 1");
}

#[test]
fn what_was_learned_belongs_to_the_server_and_the_model() {
    let endpoint = Endpoint::<Echo>::new("m").with_api_key("k");
    let clone = endpoint.clone();
    endpoint.remember_dialect(Voice { is_loud: true });
    assert!(clone.dialect().is_loud, "clones share it");
    let other = clone.with_model("n");
    assert_eq!((other.dialect().is_loud, other.name()), (false, "n"));
    assert_eq!(shown(&other), "https://echo.example/models/n x-key: k, x-version: 1");
    let moved = endpoint.with_base_url("http://h").unwrap();
    assert!(!moved.dialect().is_loud && moved.server().has_key());
    assert!(moved.with_base_url("http://loud").unwrap().dialect().is_loud, "known of the host");
}
