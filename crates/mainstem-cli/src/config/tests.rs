//! What files set, what is wrong with them, and which layer goes first.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Parser;
use mainstem::{
    guard::Network,
    model::{OnCut, PromptCache},
    policy::{Budget, Cost, Rules},
};

use super::*;
use crate::args;

fn check(text: &str, expected: &str) {
    let path = Path::new("dir/mainstem.toml");
    let error = file::parse(text, path).map(|file| format!("{file:?}")).unwrap_err().to_string();
    assert_eq!(error, format!("dir/mainstem.toml:{expected}"), "{text}");
    assert!(!error.contains("sk-"), "{error}");
}

#[test]
fn errors_name_the_place_and_no_secret() {
    check("\nmodle = 'x'", "2:1: unknown key `modle`; did you mean `model`?");
    check("model = 1", "1:9: expected a string, got 1");
    check("effort = 3", "1:10: expected a string or a table");
    check("files = 'yes'", "1:9: expected true or false, got \"yes\"");
    check("context_windows = 4", "1:19: expected a table, got 4");
    check("shell_limits = { memory = true }", "1:27: expected a number, or a text such as \"512MiB\"");
    check("max_turns = 0", "1:13: expected a whole number from 1 to 4294967295, got 0");
    check(
        "[providers.cohere]",
        "1:12: unknown key `cohere`; known: openai, anthropic, gemini, ollama, responses, openrouter, groq, deepseek, mistral, xai, together, azure, vllm, lmstudio",
    );
    check(
        "[providers.openai]\napi_key = 'sk-12345678'",
        "2:11: keys are not allowed in a file: put it into an environment variable, and the name of that into `api_key_env`",
    );
    check(
        "[providers.openai]\napi_key_env = 'sk-12345678'",
        "2:15: this is not the name of an environment variable, such as MY_KEY",
    );
    check(
        "[providers.openai.headers]\nAuthorization = 'Bearer sk-1'",
        "2:17: keys are not allowed in a file: write `${MY_KEY}` for the value of Authorization",
    );
    check("[providers.openai]\nidle_timeout = '0s'", "2:16: must be longer than 0s");
    check(
        "[providers.openai]\nidle_timeout = 0",
        "2:16: expected a time, such as \"90s\" or a number of seconds",
    );
    check("[serve]\ninput_roles = ['user', 'sytem']", "2:24: unknown value `sytem`; did you mean `system`?");
    check("[serve]\ninput_role = []", "2:1: unknown key `input_role`; did you mean `input_roles`?");
    check("model = 'x", "1:11: invalid literal string, expected `'`");
    check("größe = 'ü' model", "1:13: unexpected key or value, expected newline, `#`");
}

const FILE: &str = "
model = 'openai:file'
workspace = 'ws'
max_turns = 7
files = false
shell = true
[providers.openai]
base_url = 'http://file/v1'
api_key_env = 'FILE_KEY'
headers = { x-team = 'blue', authorization = 'Bearer ${TOKEN}' }
";

fn shown<T: std::fmt::Display>(setting: &Option<Setting<T>>) -> String {
    setting.as_ref().map_or_else(|| "-".to_owned(), |said| format!("{} ({})", said.value, said.origin))
}

/// A project's file.
fn project(text: &str) -> Divided {
    file::parse(text, Path::new("./mainstem.toml")).unwrap().divide()
}

/// The user's file.
fn own(text: &str) -> Settings {
    file::parse(text, Path::new("./mainstem.toml")).unwrap().settings
}

fn budget(tokens: Option<u64>, cost: Option<Cost>) -> Budget {
    let mut limits = Budget::default();
    (limits.tokens, limits.cost) = (tokens, cost);
    limits
}

fn load(run: &args::Run, config: Option<&Path>, var: impl Fn(&str) -> Option<String>) -> Settings {
    Files::read(config).unwrap().beyond(run.settings(), var, |_| true)
}

/// What holds, given a line of flags and the environment.
fn holds(flags: &str, env: &[(&str, &str)], config: Option<&Path>) -> String {
    let line = format!("mainstem run {flags}");
    let Some(args::Command::Run(run)) = args::Cli::parse_from(line.split_whitespace()).command else {
        panic!()
    };
    let var = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    let all = load(&run, config, var);
    let base_url = all.access("openai").base_url;
    let workspace = all.workspace.map(|said| Setting::new(said.value.display().to_string(), said.origin));
    let parts = [shown(&all.model), shown(&workspace), shown(&base_url)];
    let switches = format!("{} {}", all.files, all.shell);
    format!("{} turns={:?} {switches}", parts.join(" | "), value(&all.max_turns).map(NonZeroU32::get))
}

#[test]
fn flags_go_before_the_environment_and_that_before_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    std::fs::write(&path, FILE).unwrap();
    let check = |flags: &str, env: &[(&str, &str)], expected: &str| {
        let holds = holds(flags, env, Some(&path)).replace(dir.path().to_str().unwrap(), "DIR");
        assert_eq!(holds, expected);
    };
    let env = [("MAINSTEM_MODEL", "demo"), ("MAINSTEM_WORKSPACE", "e"), ("OPENAI_BASE_URL", "http://env/v1")];
    check(
        "",
        &[],
        "openai:file (DIR/c.toml) | DIR/ws (DIR/c.toml) | http://file/v1 (DIR/c.toml) turns=Some(7) false (DIR/c.toml) true (DIR/c.toml)",
    );
    check(
        "",
        &env,
        "demo (MAINSTEM_MODEL) | e (MAINSTEM_WORKSPACE) | http://env/v1 (OPENAI_BASE_URL) turns=Some(7) false (DIR/c.toml) true (DIR/c.toml)",
    );
    check(
        "-m x -w y --max-turns 2 --no-files --shell",
        &env,
        "x (--model) | y (--workspace) | http://env/v1 (OPENAI_BASE_URL) turns=Some(2) false (--no-files) true (--shell)",
    );
}

#[test]
fn each_limit_of_a_budget_is_looked_for_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    std::fs::write(&path, "[budget]\ntokens = 1\ncost = 2\nspawns = 3\ntime_seconds = 4").unwrap();
    let line = ["mainstem", "run", "--budget-tokens", "9"];
    let Some(args::Command::Run(run)) = args::Cli::parse_from(line).command else { panic!() };
    let all = load(&run, Some(&path), |_| None);
    let expected = budget(Some(9), Some(Cost::from_micros(2))).with_spawns(3).with_time_seconds(4);
    assert_eq!(all.budget.of_run(), expected);
    check("[budget]\ntoken = 1", "2:1: unknown key `token`; did you mean `tokens`?");
    check("[prices]\nx = { input = 1 }", "2:5: `output` is missing");
}

#[test]
fn options_of_models_come_from_flags_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    std::fs::write(
        &path,
        "effort = 'low'\nthinking_budget = 1024\nmax_output_tokens = 2048\non_cut = 'fail'\nprompt_cache = '1h'",
    )
    .unwrap();
    let options = |flags: &str| {
        let line = ["mainstem", "run"].into_iter().chain(flags.split_whitespace());
        let Some(args::Command::Run(run)) = args::Cli::parse_from(line).command else { panic!() };
        let options = load(&run, Some(&path), |_| None).model_options().map_err(|error| error.to_string())?;
        let kept = (options.on_cut, options.prompt_cache);
        Ok((options.effort, options.thinking_budget, options.max_output_tokens, kept))
    };
    assert_eq!(
        options(""),
        Ok((Some("low".to_owned()), Some(1024), Some(2048), (Some(OnCut::Fail), Some(PromptCache::OneHour))))
    );
    let flags = options(
        "--effort xhigh --thinking-budget 0 --max-output-tokens 9 --on-cut resume --prompt-cache off",
    );
    let kept = (Some(OnCut::Resume), Some(PromptCache::Off));
    assert_eq!(flags, Ok((Some("xhigh".to_owned()), Some(0), Some(9), kept)));
    let why = "thinking_budget must be below max_output_tokens, which counts thinking";
    let error = format!("--thinking-budget: {why}: 2048 is not below 2048");
    assert_eq!(options("--thinking-budget 2048"), Err(error));
    check("effort = 'hihg'", "1:10: unknown value `hihg`; did you mean `high`?");
    check("server_tools = ['web_serch']", "1:17: unknown value `web_serch`; did you mean `web_search`?");
    check("prompt_cache = '2h'", "1:16: unknown value `2h`; known: off, 5m, 1h");
    check("on_cut = 'resum'", "1:10: unknown value `resum`; did you mean `resume`?");
    check("max_output_tokens = 0", "1:21: expected a whole number from 1 to 4294967295, got 0");
}

#[test]
fn each_limit_of_agents_is_looked_for_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    std::fs::write(&path, "[limits]\nmax_depth = 1\nmax_children = 4\nwait = '90s'\nidle = 60").unwrap();
    let line = ["mainstem", "run", "--max-children", "2", "--max-tasks", "0", "--max-depth", "9"];
    let Some(args::Command::Run(run)) = args::Cli::parse_from(line).command else { panic!() };
    assert_eq!(run.shown_depth, Some(9), "a filter, not a limit");
    let all = load(&run, Some(&path), |_| None).limits;
    let seconds = |time: &Option<Setting<std::time::Duration>>| value(time).map(|time| time.as_secs());
    let max_children = value(&all.max_children).map(NonZeroUsize::get);
    assert_eq!((value(&all.max_depth), max_children), (Some(1), Some(2)));
    let times = (seconds(&all.wait), seconds(&all.idle));
    assert_eq!((value(&all.max_tasks), times), (Some(0), (Some(90), Some(60))));
    check("[limits]\nmax_child = 1", "2:1: unknown key `max_child`; did you mean `max_children`?");
}

#[test]
fn a_file_that_is_named_must_exist() {
    let error = Files::read(Some(Path::new("/no/such.toml"))).unwrap_err();
    assert_eq!(error.to_string(), "/no/such.toml: there is no such file");
}

/// What each key of a project's file comes to: whether it needs trust, and what is said about it.
fn parts(text: &str) -> Vec<String> {
    project(text).parts.iter().map(|(part, _)| format!("{} {}", part.key(), part.does().join("; "))).collect()
}

#[test]
fn what_starts_reads_sends_or_widens_is_a_part_each() {
    let check = |text: &str, expected: &[&str]| assert_eq!(parts(text), expected, "{text}");
    check("shell = true", &["shell lets agents run commands"]);
    check(
        "[serve]\ninput_roles = ['user', 'system', 'assistant']",
        &["serve.input_roles lets HTTP callers send inputs of the role system, assistant"],
    );
    check("agent_generate = true", &["agent_generate lets the agent write files of new agents"]);
    check("agent_servers = true", &["agent_servers lets agents' files declare MCP servers"]);
    check(
        "[prices]\nx = { input = 0, output = 0 }",
        &["prices sets the prices on which budgets in money depend"],
    );
    check(
        "[mcp.a]\ncommand = 'npx'\nargs = ['-y', 'x']\nenv = { A = '${TOKEN}' }\n[mcp.b]\nurl = 'https://b.example/?k=1'",
        &[
            "mcp.a starts `npx -y x`, as MCP server \"a\", with TOKEN of the environment; starts MCP server \"a\" with `A=${TOKEN}`",
            "mcp.b sends tool calls to https://b.example/, as MCP server \"b\"",
        ],
    );
    check(
        "[providers.openai]\nbase_url = 'https://me:pw@x.example/v1?a=b'",
        &[
            "providers.openai sends what openai is asked, and the key in OPENAI_API_KEY, to https://x.example/v1",
        ],
    );
    check(
        "[providers.gemini]\napi_key_env = 'AWS_SECRET_ACCESS_KEY'",
        &["providers.gemini sends AWS_SECRET_ACCESS_KEY of the environment to gemini, as the key"],
    );
    check(
        "[providers.openai]\nbase_url = 'http://x'\napi_key_env = 'K'\nheaders = { x-a = '${B}' }",
        &[
            "providers.openai sends what openai is asked, and the key in K, to http://x; sends headers to openai (x-a), with B of the environment",
        ],
    );
}

#[test]
fn what_only_narrows_or_chooses_is_none() {
    for text in [
        "",
        "model = 'openai:x'",
        "max_turns = 100",
        "files = true",
        "files = false",
        "shell = false\nagent_generate = false\nagent_servers = false",
        "[permissions]\nallow = ['*']\ndefault = 'allow'",
        "[budget]\ntokens = 1",
        "[providers.openai]",
        "[serve]\ninput_roles = ['user']",
    ] {
        assert_eq!(parts(text), [""; 0], "{text}");
    }
}

#[test]
fn a_workspace_that_leads_out_is_a_part_however_it_does() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(dir.path().join("inside")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(out.path(), dir.path().join("link")).unwrap();
    let path = dir.path().join("mainstem.toml");
    let leads_out = |workspace: &str| {
        let declared = file::parse(&format!("workspace = {workspace:?}"), &path).unwrap().divide();
        let is_set = declared.plain.workspace.is_some();
        assert_eq!(is_set, declared.parts.is_empty(), "it is in effect or a part");
        !is_set
    };
    assert!(
        !leads_out("inside") && !leads_out(".") && !leads_out("inside/../inside") && !leads_out("missing")
    );
    assert!(leads_out("..") && leads_out("inside/../..") && leads_out(out.path().to_str().unwrap()));
    #[cfg(unix)]
    assert!(leads_out("link"));
}

#[test]
fn a_part_changes_with_what_it_says_and_with_nothing_else() {
    let hashes = |text: &str| project(text).parts.iter().map(|(part, _)| part.hash()).collect::<Vec<_>>();
    let text = "model = 'a'\n[mcp.x]\ncommand = 'npx'\nargs = ['x']\n";
    let before = hashes(text);
    assert_eq!(
        before,
        hashes("# why\nmodel = \"b\"\nmax_turns = 3\n[mcp]\nx = { args = [\"x\"], command = 'npx' }")
    );
    for (from, to) in
        [("npx", "npm"), ("['x']", "['x', 'y']"), ("args", "cwd = '.'\nargs"), ("mcp.x", "mcp.y")]
    {
        assert_ne!(before, hashes(&text.replace(from, to)), "{to}");
    }
}

#[test]
fn a_trusted_project_gives_back_nothing_that_the_user_takes_away() {
    let switches = |on: bool| {
        let network = if on { "on" } else { "off" };
        format!("shell = {on}\nagent_generate = {on}\nagent_servers = {on}\nshell_network = '{network}'\n")
    };
    #[track_caller]
    fn check(of_project: &str, of_user: &str, is_on: bool, limits: &str) {
        let files = Files { project: project(of_project), own: own(of_user), named: None };
        let all = files.beyond(Settings::default(), |_| None, |_| true);
        let switches = [&all.shell, &all.agent_generate, &all.agent_servers];
        assert_eq!(switches.map(|switch| (switch.is_on(), switch.is_off())), [(is_on, !is_on); 3]);
        assert_eq!(all.shell_network.unwrap().value == Network::On, is_on);
        assert_eq!(all.shell_limits.to_string(), limits);
    }
    let limits = "[shell_limits]\ncpu = '2h'\nmemory = '1GiB'\nprocesses = 9\n";
    let (on, off) = (switches(true), switches(false));
    let own = format!("{off}[shell_limits]\ncpu = '90s'\nmemory = '2GiB'\nfile_size = '1MiB'\n");
    let within = "cpu=90s, file_size=1MiB, memory=1GiB, processes=9";
    check(&format!("{on}{limits}"), &own, false, within);
    check(&off, &on, false, "");
    check(&on, &on, true, "");
    check(&on, "", true, "");
}

#[test]
fn only_trusted_parts_are_in_effect_and_a_project_widens_no_limit() {
    let of_project = "model = 'm'\nfiles = true\nmax_turns = 9\nshell = true\nagent_generate = true\n\
                   [budget]\ntokens = 9\nspawns = 1\n[permissions]\nallow = ['a(b)']";
    let own = own(
        "files = false\nmax_turns = 5\n[budget]\ntokens = 5\nspawns = 5\n[permissions]\nallow = ['c(d)']",
    );
    let files = Files { project: project(of_project), own, named: None };
    let all = files.beyond(Settings::default(), |_| None, |part| part.key() == "shell");
    assert!(all.shell.is_on() && !all.agent_generate.is_on() && !all.agent_generate.is_off());
    assert_eq!(all.model.unwrap().value, "m");
    assert!(all.files.is_off());
    assert_eq!(
        (value(&all.max_turns).map(NonZeroU32::get), all.budget.of_run()),
        (Some(5), budget(Some(5), None).with_spawns(1))
    );
    let named = |rules: &Rules, pattern: &str| {
        rules.layers().flat_map(|layer| layer.rules()).any(|rule| rule.pattern.to_string() == pattern)
    };
    let (own, project) = (all.permissions.own(), all.permissions.project());
    assert!(named(&own, "c(d)") && !named(&own, "a(b)"));
    assert!(named(&project, "a(b)"));
}
