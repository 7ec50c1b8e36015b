//! Which texts are ids.

use proptest::prelude::*;
use serde_json::{from_value, json};

use super::*;

#[test]
fn an_id_is_parsed() {
    let longest = "x".repeat(256);
    for text in ["a", "_", "-", "~", ":", "s.1", "a..", "agent:critic:0193-ab", "A-Z_a.z:0~9", &longest] {
        assert_eq!(text.parse::<SessionId>().unwrap(), text);
        assert_eq!(AgentKey::try_from(text).unwrap(), text);
        assert_eq!(TenantName::try_from(text.to_owned()).unwrap(), text);
    }
}

#[test]
fn what_is_not_an_id_is_refused_with_the_place() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let allowed = "use 1 to 256 ASCII letters, digits and -_.:~, not beginning with a dot";
        let error = text.parse::<SessionId>().unwrap_err();
        assert_eq!(error.to_string(), format!("invalid session id {expected}; {allowed}"));
        assert_eq!(SessionId::try_from(text.to_owned()).unwrap_err(), error);
    }
    check("", r#""": empty"#);
    check("acme/secret", r#""acme/secret": '/' at character 5"#);
    check("/s", r#""/s": '/' at character 1"#);
    check("..", r#""..": '.' at character 1"#);
    check(".hidden", r#"".hidden": '.' at character 1"#);
    check("a b", r#""a b": ' ' at character 2"#);
    check("a\n", r#""a\n": '\n' at character 2"#);
    check("a\0b", r#""a\0b": '\0' at character 2"#);
    check("a\\b", r#""a\\b": '\\' at character 2"#);
    check("größe", r#""größe": 'ö' at character 3"#);
    check("a\u{202e}b", r#""a\u{202e}b": '\u{202e}' at character 2"#);
    check("a%2fb", r#""a%2fb": '%' at character 2"#);
    check("a+b", r#""a+b": '+' at character 2"#);
    let (shown, long) = ("x".repeat(64), "x".repeat(257));
    check(&long, &format!("\"{shown}…\": 257 bytes long"));
    check(&format!("{}!{shown}", "é".repeat(64)), &format!("\"{}…\": 'é' at character 1", "é".repeat(64)));
}

#[test]
fn each_kind_of_id_has_its_name_in_messages() {
    let names = [
        SessionId::from_str("/").unwrap_err(),
        RunId::from_str("/").unwrap_err(),
        ReplyId::from_str("/").unwrap_err(),
        AgentKey::from_str("/").unwrap_err(),
        TaskId::from_str("/").unwrap_err(),
        MessageId::from_str("/").unwrap_err(),
        BlockId::from_str("/").unwrap_err(),
        ConfirmId::from_str("/").unwrap_err(),
        TenantName::from_str("/").unwrap_err(),
    ];
    let names = names.map(|error| error.to_string().split(" \"").next().unwrap_or_default().to_owned());
    let kinds = [
        "session id",
        "run id",
        "reply id",
        "agent key",
        "task id",
        "message id",
        "block id",
        "confirmation id",
    ];
    let expected = kinds.iter().chain(&["tenant name"]).map(|kind| format!("invalid {kind}"));
    assert_eq!(names.to_vec(), expected.collect::<Vec<_>>());
}

#[test]
fn an_id_is_within_one_tenant() {
    let [acme, other]: [TenantName; 2] = ["acme", "acm"].map(|name| name.parse().unwrap());
    let own: TaskId = "task-1".parse().unwrap();
    let recorded = own.scoped(&acme);
    assert_eq!((recorded.as_str(), recorded.tenant(), own.tenant()), ("acme/task-1", Some("acme"), None));
    assert_eq!(recorded.unscoped(&acme), Some(own.clone()));
    assert_eq!((recorded.unscoped(&other), own.unscoped(&acme)), (None, None));
    let twice = recorded.scoped(&other);
    assert_eq!((twice.as_str(), twice.tenant()), ("acm/acme/task-1", Some("acm")));
    assert_eq!(twice.unscoped(&other), Some(recorded));
}

#[test]
fn a_recorded_id_may_be_a_tenants() {
    for text in ["s", "acme/s", "a/b/c"] {
        assert_eq!(SessionId::parse_scoped(text).unwrap(), text);
        assert_eq!(from_value::<TaskId>(json!(text)).unwrap(), text);
        assert_eq!(json!(SessionId::parse_scoped(text).unwrap()), json!(text));
    }
    let refused = |text: &str| SessionId::parse_scoped(text).unwrap_err().to_string();
    for (text, place) in
        [("/s", "empty"), ("acme/", "empty"), ("a//b", "empty"), ("a/b c/d", "' ' at character 4")]
    {
        assert!(refused(text).starts_with(&format!("invalid session id {text:?}: {place};")), "{text}");
    }
    assert!(refused("acme/../s").contains("'.' at character 6"));
}

#[test]
fn a_recorded_id_that_is_invalid_is_an_error_with_the_reason() {
    let error = from_value::<RunId>(json!("run 1")).unwrap_err().to_string();
    assert!(error.starts_with("invalid run id \"run 1\": ' ' at character 4; use 1 to 256"), "{error}");
    let error = from_value::<RunId>(json!("acme/run-1")).unwrap_err().to_string();
    assert!(error.starts_with("invalid run id \"acme/run-1\": '/' at character 5;"), "{error}");
    let error = from_value::<AgentKey>(json!(1)).unwrap_err().to_string();
    assert_eq!(error, "invalid type: integer `1`, expected agent key as a string");
}

#[test]
fn a_generated_text_becomes_the_nearest_id() {
    let check = |text: &str, expected: &str| assert_eq!(RunId::from_lossy(text), expected, "{text:?}");
    check("run-1", "run-1");
    check("agent:my agent/é:1", "agent:my_agent__:1");
    check("", "_");
    check(".", "_");
    check("..a", "_.a");
    let long = format!("agent:{}:0193", "x".repeat(500));
    check(&long, &format!("agent:{}:0193", "x".repeat(256 - 11)));
}

#[test]
fn an_infallible_conversion_has_an_id_error() {
    fn id(id: impl TryInto<SessionId, Error: Into<IdError>>) -> Result<SessionId, IdError> {
        id.try_into().map_err(Into::into)
    }
    let known = id("s").unwrap();
    assert_eq!(id(known.clone()), Ok(known));
    assert!(id("a/b".to_owned()).is_err());
}

/// Any text, and often one that is nearly an id.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[A-Za-z0-9_.:~/-]{0,12}", "[a-z./]{250,260}"]
}

proptest! {
    #[test]
    fn a_text_is_refused_or_stays_as_it_is(text in texts()) {
        if let Ok(id) = text.parse::<SessionId>() {
            prop_assert_eq!(id.to_string(), &*text);
            prop_assert_eq!(from_value::<SessionId>(json!(id)).unwrap(), &*text);
            prop_assert_eq!(SessionId::from_lossy(&text), id);
        }
        if let Ok(id) = SessionId::parse_scoped(&text) {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_generated_text_always_becomes_an_id(text in texts()) {
        let id = SessionId::from_lossy(text);
        let parsed: SessionId = id.as_str().parse().unwrap();
        prop_assert_eq!(parsed, id);
    }

    #[test]
    fn a_scoped_id_is_recorded_and_found_again(tenant in texts(), id in texts()) {
        let (tenant, id) = (TenantName::from_lossy(tenant), TaskId::from_lossy(id));
        let recorded = id.scoped(&tenant);
        prop_assert_eq!(TaskId::parse_scoped(recorded.as_str()), Ok(recorded.clone()));
        prop_assert!(recorded.as_str().parse::<TaskId>().is_err());
        prop_assert_eq!(recorded.unscoped(&tenant), Some(id));
    }
}
