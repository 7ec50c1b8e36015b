//! What an agent built from a spec has: tools, model, options, instructions, middleware.

use std::sync::Mutex;

use mainstem_model::{ModelRequest, ModelStream, ScriptedModel, scripted::Turn};
use mainstem_react::RunContext;
use mainstem_spec::{Effort, Mode};
use mainstem_tool::{Tool, ToolError, tool_fn};

use super::*;

fn tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(tool_fn(name, "", |_, (): ()| async { Ok::<_, ToolError>("") }))
}

/// A parent with the tools `search` and `write`, and the models `own` and `fast`.
fn factory() -> AgentFactory {
    let mut factory = AgentFactory::new(Arc::new(ScriptedModel::named("own")));
    factory.registry = ModelRegistry::new().with_model("fast", ScriptedModel::named("fast"));
    factory.tools.insert(tool("search")).unwrap();
    factory.tools.insert(tool("write")).unwrap();
    factory
}

fn spec() -> AgentSpec {
    AgentSpec::new("worker", "Works")
}

fn set(specs: impl IntoIterator<Item = AgentSpec>) -> SpecSet {
    let mut set = SpecSet::new();
    for spec in specs {
        set.insert(spec);
    }
    set
}

#[test]
fn tools_are_inherited_unless_the_spec_says_otherwise() {
    #[track_caller]
    fn check(spec: &AgentSpec, expected: &str) {
        let agent = factory().build(spec).unwrap();
        assert_eq!(agent.tools().names().collect::<Vec<_>>().join(" "), expected);
    }
    let none: [&str; 0] = [];
    check(&spec(), "search write");
    check(&spec().with_tools(["write"]), "write");
    check(&spec().with_tools(none), "");
    check(&spec().with_disallowed_tools(["write"]), "search");
    check(&spec().with_tools(["search", "write"]).with_disallowed_tools(["write"]), "search");
    check(&spec().with_tools(["nothing"]), "");
    // What lets a child spawn is never inherited: it must be listed.
    check(&spec().with_tools(["search", "agent_spawn"]), "agent_spawn search");
    check(&spec().with_tools(["agent_spawn", "agent_send"]), "agent_send agent_spawn");
    check(&spec().with_tools(["agent_spawn"]).with_disallowed_tools(["agent_spawn"]), "");
    check(&spec().with_disallowed_tools(["agent_spawn"]), "search write");
    // `*` is what is inherited, and no more.
    check(&spec().with_tools(["*"]), "search write");
    check(&spec().with_tools(["*", "agent_spawn"]), "agent_spawn search write");
    check(&spec().with_tools(["*", "agent_spawn"]).with_disallowed_tools(["write"]), "agent_spawn search");
    check(&spec().with_tools(["search", "agent_l*"]), "agent_list search");
}

#[test]
fn a_root_is_what_its_spec_says_and_may_spawn_unless_it_says_otherwise() {
    #[track_caller]
    fn check(spec: &AgentSpec, max_depth: u16, expected: &str) {
        let agent = factory().root(spec, Limits { max_depth, ..Limits::default() }).unwrap().build().unwrap();
        assert_eq!(agent.tools().names().collect::<Vec<_>>().join(" "), expected);
    }
    check(
        &spec(),
        3,
        "agent_close agent_fanout agent_list agent_send agent_spawn search task_cancel task_list task_output task_wait write",
    );
    check(&spec(), 0, "search write");
    check(&spec().with_tools(["search", "agent_spawn"]), 3, "agent_spawn search");
    check(
        &spec().with_disallowed_tools(["write", "agent_fanout"]),
        3,
        "agent_close agent_list agent_send agent_spawn search task_cancel task_list task_output task_wait",
    );
}

#[test]
fn skills_are_read_by_whoever_has_some_and_may_have_the_tool() {
    #[track_caller]
    fn check(skills: &[&str], spec: &AgentSpec, expected: bool) {
        let mut factory = factory();
        factory.skills = skills.iter().map(|&name| name.to_owned()).collect();
        let reads = |agent: Agent| agent.tools().get("load_skill").is_some();
        assert_eq!(reads(factory.build(spec).unwrap()), expected);
        assert_eq!(
            reads(factory.root(spec, Limits { max_depth: 0, ..Limits::default() }).unwrap().build().unwrap()),
            expected
        );
    }
    let none: [&str; 0] = [];
    check(&[], &spec(), false);
    check(&["pdf"], &spec(), true);
    check(&["pdf"], &spec().with_skills(["pdf", "csv"]), true);
    check(&["pdf"], &spec().with_skills(["csv"]), false);
    check(&["pdf"], &spec().with_skills(none), false);
    check(&["pdf"], &spec().with_tools(["search"]), false);
    check(&["pdf"], &spec().with_tools(["load_skill"]), true);
    check(&["pdf"], &spec().with_disallowed_tools(["load_skill"]), false);
}

#[test]
fn a_skill_that_does_not_exist_is_said() {
    let mut factory = factory();
    factory.skills = vec!["pdf".to_owned()];
    let listed = spec().with_skills(["pdf", "pfd"]).with_tools(["load_skill"]);
    let (catalog, problems) = factory.catalog(&set([listed]));
    assert!(catalog.get("worker").is_some() && problems.iter().all(CatalogError::is_warning));
    let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(said, [r#"agent "worker" lists skill "pfd", which does not exist; known: pdf"#]);
}

#[test]
fn a_tool_that_is_off_is_reported_as_off() {
    let mut factory = factory();
    factory.tools_off.insert("shell".to_owned(), "set SHELL=1".to_owned());
    factory.tools_off.insert("search".to_owned(), "never read: agents have it".to_owned());
    let listed = spec().with_tools(["shell", "search"]).with_disallowed_tools(["shell"]);
    let (catalog, problems) = factory.catalog(&set([listed]));
    assert!(catalog.get("worker").is_some() && problems.iter().all(CatalogError::is_warning));
    let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(said, [r#"agent "worker" lists tool "shell", which is off; set SHELL=1"#]);
}

#[test]
fn the_model_is_the_parents_or_the_one_named_and_never_another() {
    let model = |spec: &AgentSpec| factory().build(spec).map(|agent| agent.model().name().to_owned());
    assert_eq!(model(&spec()).unwrap(), "own");
    assert_eq!(model(&spec().with_model("fast")).unwrap(), "fast");
    let error = model(&spec().with_model("fsat")).unwrap_err();
    assert_eq!(error.to_string(), r#"agent "worker": unknown model "fsat"; known: fast"#);
    assert!(!error.is_warning());
}

#[test]
fn what_cannot_be_built_is_left_out_and_said() {
    let specs = [
        AgentSpec::new("good", "G"),
        AgentSpec::new("lost", "L").with_model("fsat"),
        AgentSpec::new("wishful", "W").with_tools(["search", "fly"]),
    ];
    let (catalog, problems) = factory().catalog(&set(specs));
    let ids: Vec<_> = catalog.iter().map(|entry| entry.spec.id.as_str()).collect();
    assert_eq!(ids, ["general-purpose", "good", "wishful"]);
    let mut said: Vec<_> =
        problems.iter().map(|problem| (problem.is_warning(), problem.to_string())).collect();
    said.sort();
    let expected = [
        (false, r#"agent "lost": unknown model "fsat"; known: fast"#),
        (
            true,
            r#"agent "wishful" lists tool "fly", which does not exist; known: search, write, agent_spawn, agent_fanout, agent_send, agent_list, agent_close, task_output, task_wait, task_cancel, task_list"#,
        ),
    ];
    assert_eq!(said, expected.map(|(is_warning, text)| (is_warning, text.to_owned())));
}

#[test]
fn tools_that_clash_leave_an_agent_out() {
    let mut factory = factory();
    factory.tools.insert(tool("agent_spawn")).unwrap();
    let error = factory.build(&spec().with_tools(["agent_spawn"])).unwrap_err();
    assert_eq!(error.to_string(), r#"agent "worker": two tools are named "agent_spawn"; rename one"#);
    assert!(!error.is_warning());
}

#[test]
fn general_purpose_is_always_there_unless_it_is_declared() {
    let (catalog, problems) = factory().catalog(&set([]));
    let general = catalog.spawnable("general-purpose").unwrap();
    assert_eq!(general.agent.local().unwrap().tools().names().collect::<Vec<_>>(), ["search", "write"]);
    assert_eq!(general.agent.local().unwrap().model().name(), "own");
    assert_eq!(general.spec.workspace.mode, WorkspaceMode::Shared);
    assert!(problems.is_empty());
    let declared = AgentSpec::new("general-purpose", "Mine").with_tools(["search"]);
    let (catalog, _) = factory().catalog(&set([declared]));
    let general = catalog.get("general-purpose").unwrap();
    assert_eq!(
        (&*general.spec.description, general.agent.local().unwrap().tools().names().count()),
        ("Mine", 1)
    );
    assert_eq!(catalog.iter().count(), 1);
}

#[test]
fn what_can_not_be_built_is_said() {
    #[track_caller]
    fn check(spec: AgentSpec, expected: &str) {
        let (catalog, problems) = factory().catalog(&set([spec]));
        assert!(catalog.get("worker").is_none());
        let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said, [format!("agent \"worker\": {expected}")]);
    }
    check(
        spec().with_url("https://example.com"),
        "url: this program runs no remote agents, so the agent is left out",
    );
    check(
        spec().with_output_schema(serde_json::json!({"type": "objekt"})),
        r#"output_schema: the output schema is not valid: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword"#,
    );
}

#[test]
fn a_directory_needs_a_workspace() {
    let mut factory = factory();
    let spec = spec().with_workspace_path("there");
    let error = factory.build(&spec).unwrap_err();
    let expected =
        "agent \"worker\": workspace.path needs a harness with a workspace, so the agent is left out";
    assert_eq!((error.agent_id(), &*error.to_string()), ("worker", expected));
    assert!(!error.is_warning());
    factory.has_workspace = true;
    let (catalog, problems) = factory.catalog(&set([spec]));
    assert!(catalog.get("worker").is_some() && problems.is_empty(), "{problems:?}");
}

#[test]
fn a_model_is_offered_what_it_may_spawn() {
    let specs = [
        AgentSpec::new("boss", "B").with_mode(Mode::Primary),
        AgentSpec::new("ghost", "G").with_hidden(true),
        AgentSpec::new("kid", "K").with_mode(Mode::Subagent),
    ];
    let (catalog, _) = factory().catalog(&set(specs));
    let offered: Vec<_> = catalog.offered().map(|entry| entry.spec.id.as_str()).collect();
    assert_eq!(offered, ["general-purpose", "kid"]);
    let refusal = |id: &str| catalog.spawnable(id).err().map(|error| error.to_string());
    assert_eq!(refusal("kid"), None);
    assert_eq!(refusal("boss").unwrap(), r#"agent "boss" can't be spawned: its mode is primary"#);
    // A hidden one does not exist for a model.
    assert_eq!(refusal("ghost").unwrap(), r#"unknown agent_id "ghost"; known: general-purpose, kid"#);
    assert_eq!(refusal("ghots").unwrap(), r#"unknown agent_id "ghots"; known: general-purpose, kid"#);
    assert!(catalog.get("ghost").is_some(), "code may call it");
}

#[test]
fn agents_that_can_only_spawn_one_another_are_said() {
    let stuck = |specs: Vec<AgentSpec>| {
        let (_, problems) = factory().catalog(&set(specs));
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let deny = |agent: &str, others: &[&str]| {
        let spec = AgentSpec::new(agent, "A").with_tools(["agent_spawn"]);
        others
            .iter()
            .fold(spec, |spec, id| spec.with_permission(format!("agent_spawn({id})"), Permission::Deny))
    };
    // `general-purpose` works, and can be spawned unless that is denied.
    assert_eq!(stuck(vec![deny("a", &[]), deny("b", &[])]), [""; 0]);
    let said = |id: &str, reaches: &str| {
        format!(
            "agent {id:?} can only spawn, and reaches no agent with a tool to work with; it may spawn: {reaches}"
        )
    };
    let pair = vec![deny("a", &["general-purpose"]), deny("b", &["general-purpose"])];
    assert_eq!(stuck(pair.clone()), [said("a", "a, b"), said("b", "a, b")]);
    assert_eq!(stuck(vec![deny("a", &["general-purpose", "a"])]), [said("a", "none")]);
    // One that works opens the circle for all that reach it.
    let worker = AgentSpec::new("worker", "W").with_tools(["search"]);
    assert_eq!(stuck([pair.clone(), vec![worker]].concat()), [""; 0]);
    // One without any tool answers by itself.
    let none: [&str; 0] = [];
    let thinker = AgentSpec::new("thinker", "T").with_tools(none);
    assert_eq!(stuck([pair, vec![thinker]].concat()), [""; 0]);
}

#[test]
fn a_finding_names_key_and_what_was_meant() {
    let mut factory = factory();
    factory.skills = vec!["pdf".to_owned()];
    factory.registry = factory.registry.with_provider("openai", |_| Ok(Arc::new(ScriptedModel::new())));
    factory.servers = vec![ToolGrant::new(Arc::new(Source("git", "log")), Grantee::Everyone)];
    let specs = set([
        spec().with_tools(["serach", "fly"]).with_skills(["pfd"]).with_mcp_servers(["gti"]),
        AgentSpec::new("lost", "L").with_model("fsat"),
        AgentSpec::new("lust", "L").with_model("opnai:gpt-4o"),
    ]);
    let found = factory.catalog(&specs).1.into_iter().map(|problem| problem.finding(&specs));
    let mut said: Vec<_> = found
        .map(|found| (found.is_error(), found.key.unwrap(), found.suggestion.unwrap_or_default()))
        .collect();
    said.sort();
    let row = |is_error, key: &str, meant: &str| (is_error, key.to_owned(), meant.to_owned());
    let expected = [
        row(false, "mcp_servers", "git"),
        row(false, "skills", "pdf"),
        row(false, "tools", ""),
        row(false, "tools", "search"),
        row(true, "model", "fast"),
        row(true, "model", "openai:gpt-4o"),
    ];
    assert_eq!(said, expected);
}

/// Keeps what it is asked, and says it was asked.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<ModelRequest>>>);

impl Model for Keeps {
    fn name(&self) -> &str {
        "keeps"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.0.lock().unwrap().push(request.clone());
        let call = || Turn::new().call("search", serde_json::json!(null));
        ScriptedModel::new().agent("worker", [call(), call(), call()]).stream(request)
    }
}

struct Section;

#[mainstem_tool::async_trait]
impl Middleware for Section {
    fn system_prompt(&self, _: &RunContext) -> Option<String> {
        Some("A section.".to_owned())
    }
}

#[tokio::test]
async fn options_steps_prompt_and_middleware_reach_the_model() {
    let keeps = Keeps::default();
    let mut factory = factory();
    factory.model = Arc::new(keeps.clone());
    factory.options.temperature = Some(0.9);
    factory.options.top_p = Some(0.5);
    factory.options.max_output_tokens = Some(64);
    factory.middleware.push(Arc::new(Section));
    factory.options.effort = Some("high".to_owned());
    let spec = spec().with_temperature(0.1).with_steps(2).with_prompt("Be brief.");
    let spec = spec.with_effort(Effort::Low).with_thinking_budget(9);
    factory.build(&spec).unwrap().call("go").await;
    let requests = keeps.0.lock().unwrap();
    let options = &requests[0].options;
    assert_eq!(
        (options.temperature, options.top_p, options.max_output_tokens),
        (Some(0.1), Some(0.5), Some(64))
    );
    assert_eq!((options.effort.as_deref(), options.thinking_budget), (Some("low"), Some(9)));
    assert_eq!(requests.len(), 3, "two steps, and the last call");
    let system = requests[0].system.as_deref().unwrap();
    assert!(system.starts_with("Be brief.\n\n# You are a subagent\n"), "{system}");
    assert!(system.ends_with("\n\nA section."), "{system}");
}

/// A server that has a tool of its own.
struct Source(&'static str, &'static str);

#[mainstem_tool::async_trait]
impl ToolSource for Source {
    fn name(&self) -> &str {
        self.0
    }

    async fn ready(&self) {}

    fn tools(&self) -> ToolSet {
        let mut tools = ToolSet::new();
        tools.insert(tool(&format!("mcp__{}__{}", self.0, self.1))).unwrap();
        tools
    }

    fn owns(&self, tool: &str) -> bool {
        tool.starts_with(&format!("mcp__{}__", self.0))
    }
}

#[test]
fn servers_are_for_those_who_list_them_and_an_own_one_hides_another() {
    let mut factory = AgentFactory::new(Arc::new(ScriptedModel::named("own")));
    factory.servers = vec![
        ToolGrant::new(Arc::new(Source("git", "log")), Grantee::Everyone),
        ToolGrant::new(Arc::new(Source("docs", "find")), Grantee::Listed),
        ToolGrant::new(Arc::new(Source("git", "mine")), Grantee::Agent("worker".to_owned())),
    ];
    let check = |spec: &AgentSpec, expected: &str| {
        let agent = factory.build(spec).unwrap();
        assert_eq!(agent.tools().names().collect::<Vec<_>>().join(" "), expected);
    };
    let other = AgentSpec::new("other", "Works");
    check(&other, "mcp__git__log");
    check(&other.clone().with_mcp_servers(["docs"]), "mcp__docs__find");
    check(&other.clone().with_tools(["mcp__git__*"]), "mcp__git__log");
    check(&other.clone().with_disallowed_tools(["mcp__git__*"]), "");
    check(&spec(), "mcp__git__mine");
    check(&spec().with_mcp_servers(["git", "docs"]), "mcp__docs__find mcp__git__mine");
    let unknown = factory.catalog(&set([other.with_mcp_servers(["gti"])])).1;
    assert_eq!(
        unknown[0].to_string(),
        "agent \"other\" lists MCP server \"gti\", which is not configured; known: git, docs"
    );
}
