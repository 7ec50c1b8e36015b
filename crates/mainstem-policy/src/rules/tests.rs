//! Decisions of rules, alone and in layers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Because, Decision, Effect, Rule, RuleSet, Rules};
use Effect::{Allow, Ask, Deny};

fn set(default: Effect, rules: &[(Effect, &str)]) -> RuleSet {
    rules
        .iter()
        .fold(RuleSet::new(default), |set, (effect, pattern)| set.with_pattern(*effect, pattern).unwrap())
}

fn shell(command: &str) -> Value {
    json!({"command": command})
}

/// Returns the pattern of the rule that decides.
fn pattern(decision: Decision<'_>) -> Option<String> {
    match decision.because {
        Because::Rule(rule) => Some(rule.pattern.to_string()),
        Because::Default | Because::Changes => None,
    }
}

#[test]
fn the_strictest_rule_of_a_set_decides() {
    let check =
        |default, rules: &[(Effect, &str)], command: &str, expected: Effect, because: Option<&str>| {
            let rules = Rules::from(set(default, rules));
            let decision = rules.decide("shell", &shell(command), false);
            let pattern = pattern(decision);
            assert_eq!((decision.effect, pattern.as_deref()), (expected, because), "{command}");
        };
    check(Allow, &[], "ls", Allow, None);
    check(Ask, &[], "ls", Ask, None);
    check(Deny, &[], "ls", Deny, None);
    check(Deny, &[(Allow, "shell")], "ls", Allow, Some("shell"));
    check(Deny, &[(Allow, "read_*")], "ls", Deny, None);
    check(Ask, &[(Allow, "shell(git *)")], "git status", Allow, Some("shell(git *)"));
    check(Ask, &[(Allow, "shell(git *)")], "git status; ls", Ask, None);
    check(Ask, &[(Allow, "shell(git *)")], "git status > x", Ask, None);
    check(Allow, &[(Ask, "shell(git *)")], "ls; git status", Ask, Some("shell(git *)"));
    check(Allow, &[(Deny, "shell(rm *)")], "ls | xargs rm", Deny, Some("shell(rm *)"));
    check(Allow, &[(Deny, "shell(rm *)")], "ls", Allow, None);
    check(Allow, &[(Allow, "shell"), (Ask, "*"), (Deny, "sh*")], "ls", Deny, Some("sh*"));
    check(Allow, &[(Deny, "sh*"), (Ask, "*"), (Allow, "shell")], "ls", Deny, Some("sh*"));
    check(Allow, &[(Allow, "shell(git *)"), (Ask, "shell")], "git status", Ask, Some("shell"));
    check(Deny, &[(Deny, "shell(a)"), (Allow, "shell"), (Ask, "*")], "ls", Ask, Some("*"));
    check(Allow, &[(Ask, "shell"), (Ask, "*")], "ls", Ask, Some("shell"));
}

#[test]
fn the_strictest_layer_decides() {
    let check = |layers: &[RuleSet], command: &str, expected: Effect, because: Option<&str>| {
        let rules = layers.iter().fold(Rules::new(), |rules, layer| rules.narrowed_by(&layer.clone().into()));
        let decision = rules.decide("shell", &shell(command), false);
        let pattern = pattern(decision);
        assert_eq!((decision.effect, pattern.as_deref()), (expected, because), "{command}");
    };
    let parent = set(Ask, &[(Allow, "shell(git *)"), (Deny, "shell(git push *)")]);
    let child = set(Allow, &[(Allow, "*"), (Deny, "shell(git commit *)")]);
    check(&[], "ls", Allow, None);
    check(&[parent.clone(), child.clone()], "git status", Allow, Some("shell(git *)"));
    check(&[parent.clone(), child.clone()], "ls", Ask, None);
    check(&[parent.clone(), child.clone()], "git push", Deny, Some("shell(git push *)"));
    check(&[parent.clone(), child.clone()], "git commit", Deny, Some("shell(git commit *)"));
    check(&[child.clone(), parent.clone()], "git commit", Deny, Some("shell(git commit *)"));
    check(&[parent, set(Deny, &[(Allow, "read_*")]), child], "git status", Deny, None);
    check(&[set(Allow, &[(Deny, "shell")]), set(Allow, &[(Deny, "*")])], "ls", Deny, Some("shell"));
    check(&[set(Ask, &[]), set(Allow, &[(Ask, "*")])], "ls", Ask, Some("*"));
}

#[test]
fn a_decision_says_why() {
    let check = |rules: RuleSet, expected: &str| {
        assert_eq!(Rules::from(rules).decide("shell", &shell("ls"), false).to_string(), expected);
    };
    let deny = |origin: &str| set(Allow, &[(Deny, "shell(ls*)")]).with_origin(origin);
    check(set(Deny, &[]), "denied by default: no rule is about this call");
    check(set(Allow, &[]).with_changes(Deny), "denied by default: the tool may change something");
    check(set(Deny, &[]).with_changes(Ask), "denied by default: no rule is about this call");
    check(set(Ask, &[(Ask, "*")]), r#"to be confirmed by a person, by the rule "*""#);
    check(set(Ask, &[(Allow, "*")]), r#"allowed by the rule "*""#);
    check(deny("subagents/reviewer.md"), r#"denied by the rule "shell(ls*)" of subagents/reviewer.md"#);
    check(
        deny("mainstem.toml").with_origin("elsewhere"),
        r#"denied by the rule "shell(ls*)" of mainstem.toml"#,
    );
}

#[test]
fn tools_that_can_never_run_need_not_be_offered() {
    let check = |layer: RuleSet, tool: &str, expected| {
        let rules = Rules::from(set(Allow, &[])).narrowed_by(&layer.into());
        assert_eq!(rules.is_tool_refused(tool, false), expected, "{tool}");
    };
    check(set(Allow, &[(Deny, "mcp__*")]), "mcp__x", true);
    check(set(Allow, &[(Deny, "mcp__*")]), "shell", false);
    check(set(Allow, &[(Deny, "shell(rm *)")]), "shell", false);
    check(set(Deny, &[]), "shell", true);
    check(set(Deny, &[(Allow, "shell(git *)")]), "shell", false);
    check(set(Deny, &[(Ask, "shell")]), "shell", false);
    check(set(Deny, &[(Deny, "shell(rm *)")]), "shell", true);
    check(set(Ask, &[]), "shell", false);
    check(set(Allow, &[]).with_changes(Deny), "shell", true);
    check(set(Allow, &[]).with_changes(Deny), "agent_spawn", false);
    check(set(Allow, &[(Allow, "shell(ls)")]).with_changes(Deny), "shell", false);
}

#[test]
fn tools_that_may_change_something_have_an_effect_of_their_own() {
    let check = |layers: &[RuleSet], tool: &str, is_read_only, expected: Effect| {
        let rules = layers.iter().fold(Rules::new(), |rules, layer| rules.narrowed_by(&layer.clone().into()));
        assert_eq!(rules.decide(tool, &shell("ls"), is_read_only).effect, expected, "{tool} {layers:?}");
    };
    let asks = || set(Allow, &[]).with_changes(Ask);
    check(&[asks()], "shell", false, Ask);
    let rules = Rules::from(asks()).narrowed_by(&set(Allow, &[(Ask, "sh*")]).into());
    let decision = rules.decide("shell", &shell("ls"), false);
    assert_eq!(pattern(decision).as_deref(), Some("sh*"), "a rule is more of a reason");
    check(&[asks()], "read_file", true, Allow);
    check(&[asks()], "agent_spawn", false, Allow);
    check(&[set(Deny, &[]).with_changes(Ask)], "shell", false, Deny);
    check(&[set(Ask, &[]).with_changes(Allow)], "shell", false, Ask);
    let but_ls = set(Allow, &[(Allow, "shell(ls)")]).with_changes(Ask);
    check(std::slice::from_ref(&but_ls), "shell", false, Allow);
    check(&[but_ls, asks()], "shell", false, Ask);
    check(&[set(Allow, &[(Deny, "shell")]).with_changes(Ask)], "shell", false, Deny);
}

#[test]
fn sets_read_from_files() {
    let check = |text: &str, expected: &RuleSet| {
        assert_eq!(&toml::from_str::<RuleSet>(text).unwrap(), expected, "{text}")
    };
    check("", &RuleSet::default());
    check("default = 'deny'", &set(Deny, &[]));
    check(
        "allow = ['read_*']\nask = ['shell']\ndeny = ['write_file(path: .git/**)', 'x']",
        &set(Allow, &[(Allow, "read_*"), (Ask, "shell"), (Deny, "write_file(path: .git/**)"), (Deny, "x")]),
    );
    check("changes = 'ask'", &set(Allow, &[]).with_changes(Ask));
    check(
        "rules = [{ pattern = 'a', effect = 'ask' }]\ndeny = ['b']",
        &set(Allow, &[(Ask, "a"), (Deny, "b")]),
    );

    let fails = |text: &str, expected: &str| {
        let error = toml::from_str::<RuleSet>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails("denied = ['x']", "unknown field `denied`");
    fails("default = 'never'", "unknown variant `never`");
    fails("deny = ['shell(']", "column 7: expected \")\"");
    fails("rules = [{ pattern = 'a' }]", "missing field `effect`");
}

#[test]
fn the_schema_shows_the_short_form() {
    let schema = serde_json::to_value(schemars::schema_for!(RuleSet)).unwrap();
    let keys: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["default", "changes", "rules", "allow", "ask", "deny"]);
    assert_eq!(schema["properties"]["deny"]["items"]["$ref"], "#/$defs/Pattern");
}

#[test]
fn a_chain_can_be_handed_to_another_process() {
    let first = set(Ask, &[(Deny, "shell(rm *)")]).with_origin("mainstem.toml");
    let second = set(Allow, &[]).with_rule(Rule::new(Ask, "*").unwrap().with_origin("--ask"));
    let rules = Rules::from(first).narrowed_by(&second.into());
    let json = serde_json::to_string(&rules).unwrap();
    assert_eq!(serde_json::from_str::<Rules>(&json).unwrap(), rules);
    assert_eq!(rules.layers().count(), 2);
}

fn effects() -> impl Strategy<Value = Effect> {
    prop::sample::select(vec![Allow, Ask, Deny])
}

fn sets() -> impl Strategy<Value = RuleSet> {
    let patterns = prop::sample::select(vec![
        "*",
        "shell",
        "sh*",
        "shell(git *)",
        "shell(command: git *)",
        "shell(rm *)",
        "*(*rm*)",
        "write_file",
        "write_file(path: src/**)",
        "write_file(src/**)",
        "write_file(path: **)",
        "read_*(path: *)",
    ]);
    let rules = prop::collection::vec((effects(), patterns), 0..6);
    (effects(), prop::option::of(effects()), rules)
        .prop_map(|(default, changes, rules)| set(default, &rules).with_changes(changes))
}

fn calls() -> impl Strategy<Value = (&'static str, Value)> {
    let command = "(git|rm|ls) [a-z]{0,2}((; |&& ?| > |\\|)(git|rm|ls) x){0,2}";
    prop_oneof![
        command.prop_map(|command| ("shell", json!({ "command": command }))),
        "(src|lib|\\.\\.|/src|\\./src)/([a-z]{1,2}|\\.\\.)(/x)?"
            .prop_map(|path| ("write_file", json!({ "path": path }))),
        "[a-z]{1,3}".prop_map(|path| ("read_file", json!({ "path": path }))),
        Just(("other", json!(null))),
    ]
}

proptest! {
    #[test]
    fn a_child_is_never_laxer(layers in prop::collection::vec(sets(), 1..6), (tool, arguments) in calls(), is_read_only: bool) {
        let mut rules = Rules::new();
        for layer in layers {
            let child = rules.narrowed_by(&layer.clone().into());
            let alone = Rules::from(layer).decide(tool, &arguments, is_read_only).effect;
            let parent = rules.decide(tool, &arguments, is_read_only).effect;
            prop_assert_eq!(child.decide(tool, &arguments, is_read_only).effect, parent.max(alone));
            rules = child;
        }
    }

    #[test]
    fn nesting_is_associative(layers in prop::array::uniform3(sets()), (tool, arguments) in calls(), is_read_only: bool) {
        let [a, b, c] = layers.map(Rules::from);
        let left = a.narrowed_by(&b).narrowed_by(&c);
        let right = a.narrowed_by(&b.narrowed_by(&c));
        prop_assert_eq!(left.decide(tool, &arguments, is_read_only), right.decide(tool, &arguments, is_read_only));
    }

    #[test]
    fn a_further_deny_never_loosens(layer in sets(), more in sets(), (tool, arguments) in calls(), is_read_only: bool) {
        let before = Rules::from(layer.clone()).decide(tool, &arguments, is_read_only).effect;
        let denials = more.rules().iter().filter(|rule| rule.effect == Deny);
        let after = Rules::from(denials.cloned().fold(layer, RuleSet::with_rule)).decide(tool, &arguments, is_read_only).effect;
        prop_assert!(after >= before);
    }

    #[test]
    fn a_tool_that_is_not_offered_never_runs(layer in sets(), (tool, arguments) in calls(), is_read_only: bool) {
        let rules = Rules::from(layer);
        prop_assert!(!rules.is_tool_refused(tool, is_read_only) || rules.decide(tool, &arguments, is_read_only).effect == Deny);
    }

    #[test]
    fn sets_round_trip(layer in sets()) {
        let json = serde_json::to_value(&layer).unwrap();
        prop_assert_eq!(&serde_json::from_value::<RuleSet>(json).unwrap(), &layer);
        prop_assert_eq!(toml::from_str::<RuleSet>(&toml::to_string(&layer).unwrap()).unwrap(), layer);
    }
}

#[test]
fn an_allowance_by_name_is_found_in_any_layer_and_a_refusal_is_none() {
    let call = json!({ "path": "skills/a/SKILL.md" });
    let set = |effect, pattern: &str| Rules::from(RuleSet::default().with_pattern(effect, pattern).unwrap());
    let named = set(Allow, "write_file(path: skills/**)");
    assert!(named.is_allowed_by_name("write_file", &call));
    assert!(set(Deny, "shell").narrowed_by(&named).is_allowed_by_name("write_file", &call));
    assert!(!set(Deny, "write_file(path: skills/**)").is_allowed_by_name("write_file", &call));
    assert!(!set(Allow, "*").is_allowed_by_name("write_file", &call));
}

#[test]
fn only_what_is_allowed_is_open_to_a_tool() {
    let set = |effect, pattern: &str| Rules::from(RuleSet::default().with_pattern(effect, pattern).unwrap());
    let open = |rules: &Rules| rules.open_paths("shell").map(str::to_owned).collect::<Vec<_>>();
    let rules = set(Allow, "shell(path: .git/**)").narrowed_by(&set(Allow, "shell(path: vendor/**)"));
    assert_eq!(open(&rules), [".git", "vendor"]);
    assert_eq!(open(&set(Deny, "shell(path: .git/**)")), [""; 0]);
    assert_eq!(open(&set(Allow, "write_file(path: .git/**)")), [""; 0]);
}
