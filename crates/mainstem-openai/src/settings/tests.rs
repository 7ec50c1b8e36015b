//! Settings, and what is known of hosts.

use mainstem_http::{Dialect as _, Service};
use mainstem_model::{Model, ModelRequest};

use super::*;
use crate::{
    OpenAi, OpenAiResponses,
    dialect::Dialect,
    service::{AZURE, DEEPSEEK, GROQ, MISTRAL, OPENROUTER, VLLM},
};

fn from_vars(vars: &[(&str, &str)]) -> OpenAi {
    let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    OpenAi::from_vars("m", var).unwrap()
}

#[test]
fn who_pays_is_a_header() {
    let vars = from_vars(&[("OPENAI_API_KEY", "sk-1"), ("OPENAI_ORG_ID", "org"), ("OPENAI_PROJECT_ID", "p")]);
    let set = OpenAi::new("m").with_organization("org").unwrap().with_project("p").unwrap();
    for model in [vars, set.with_api_key("sk-1")] {
        let headers = model.server().headers().unwrap();
        let value = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(value("authorization"), "Bearer sk-1");
        assert_eq!((value("openai-organization"), value("openai-project")), ("org".into(), "p".into()));
    }
    let local = from_vars(&[("OPENAI_BASE_URL", "http://localhost:1/v1"), ("OPENAI_API_KEY", "")]);
    assert_eq!(local.server().host(), "localhost:1");
    assert!(local.server().headers().unwrap().is_empty());
}

#[test]
fn a_vendors_deviations_are_known_before_the_first_request() {
    let check = |service: &Service, host: &str, expected: Dialect| {
        assert_eq!(Dialect::of(service, host), expected, "{} at {host}", service.provider);
    };
    let completion_tokens = || Dialect { completion_tokens: true, ..Dialect::default() };
    check(&OPENAI, "eu.api.openai.com", Dialect { own_fields: true, ..completion_tokens() });
    check(&AZURE, "h", Dialect { own_fields: true, ..Dialect::default() });
    check(&OPENAI, "h", Dialect::default());
    check(&GROQ, "api.groq.com", completion_tokens());
    check(&DEEPSEEK, "h", Dialect { reasoning: true, ..Dialect::default() });
    check(&OPENROUTER, "h", Dialect { thinking_budget: true, ..Dialect::default() });
    check(&MISTRAL, "api.mistral.ai", Dialect { no_usage: true, random_seed: true, ..Dialect::default() });
    check(&VLLM, "localhost:8000", Dialect::default());
}

#[test]
fn openai_holds_schemas_and_of_others_it_is_said() {
    fn check<A: Api + AsMut<Settings>>(openai: Endpoint<A>) {
        let request = ModelRequest::default();
        assert!(openai.can_enforce_schema(&request));
        let other = openai.with_base_url("http://h").unwrap();
        assert!(!other.can_enforce_schema(&request));
        assert!(other.with_json_schema(true).can_enforce_schema(&request));
    }
    check(OpenAi::new("m"));
    check(OpenAiResponses::new("m"));
}

#[test]
fn a_setting_stays() {
    fn check<A: Api + AsMut<Settings>>(openai: Endpoint<A>) {
        let whole = openai.without_streaming("no").with_base_url("http://h").unwrap().with_model("n");
        let reason = whole.api().whole(&ModelRequest::default(), &whole.dialect());
        assert_eq!(reason.as_deref(), Some("no"));
    }
    check(OpenAi::new("m"));
    check(OpenAiResponses::new("m"));
}
