//! Which parts of a configuration file need trust, and what they do.

use std::path::Path;

use mainstem::{
    guard::Network,
    mcp::Server,
    message::Role,
    policy::{Part, Prices},
    subagent::trust::{server_does, shown_address, with_variables},
    vendor::vendor,
};
use serde_json::{Value, json};

use super::{
    Access, Declared, NAME, Setting, Settings, ShellLimits,
    file::{File, InputRole, Provider},
};

/// Divides a file into settings that apply at once and parts that need trust; `raw` is the same
/// file as values.
pub(super) fn divide(file: File, raw: &Value, path: &Path) -> Declared {
    // Each key is named, so that a new one is not in effect before it is decided whether it needs
    // trust.
    let File {
        model,
        workspace,
        max_turns,
        limits,
        permissions,
        files,
        shell,
        shell_network,
        shell_limits,
        agent_generate,
        budget,
        prices,
        mcp,
        agent_servers,
        providers,
        serve,
    } = file;
    let origin = &*path.display().to_string();
    let switch = |value: bool| Setting::new(value, origin);
    let off = |said: Option<bool>| said.filter(|value| !value).map(switch);
    // A directory is relative to the file, not to where the command runs.
    let near = path.parent().unwrap_or_else(|| Path::new(""));
    let workspace = workspace.map(|workspace| Setting::new(near.join(workspace), origin));
    let leads_to = workspace.as_ref().and_then(|workspace| outside(near, &workspace.value));
    let mut parts = Parts { raw, origin, found: Vec::new() };
    parts.switch("shell", shell, "lets agents run commands", |shell| Settings { shell, ..none() });
    parts.switch("agent_generate", agent_generate, "lets the agent write files of new agents", |said| {
        Settings { agent_generate: said, ..none() }
    });
    parts.switch("agent_servers", agent_servers, "lets agents' files declare MCP servers", |said| Settings {
        agent_servers: said,
        ..none()
    });
    parts.sandbox(shell_network, shell_limits);
    parts.prices(prices);
    if let Some(leads_to) = &leads_to {
        let does = format!("lets agents work in {leads_to}, outside the folder");
        parts.add("workspace", json!(leads_to), [does], Settings { workspace: workspace.clone(), ..none() });
    }
    mcp.into_iter().for_each(|(name, server)| parts.server(&name, beside(server.into_inner(), near)));
    parts.input_roles(serve.input_roles);
    providers.into_iter().for_each(|(vendor, provider)| parts.provider(vendor.0, provider));
    let plain = Settings {
        model: model.map(|name| Setting::new(name, origin)),
        workspace: workspace.filter(|_| leads_to.is_none()),
        max_turns,
        fleet: limits,
        permissions: permissions.map(|set| set.with_origin(origin).into()).unwrap_or_default(),
        files: files.map(switch),
        shell: off(shell),
        shell_network: shell_network
            .filter(|said| *said == Network::Off)
            .map(|off| Setting::new(off, origin)),
        agent_generate: off(agent_generate),
        agent_servers: off(agent_servers),
        budget,
        ..none()
    };
    Declared { plain, parts: parts.found }
}

fn none() -> Settings {
    Settings::default()
}

/// The parts of one file that need trust, under way.
struct Parts<'a> {
    raw: &'a Value,
    origin: &'a str,
    found: Vec<(Part, Settings)>,
}

impl Parts<'_> {
    fn add(
        &mut self,
        key: impl Into<String>,
        content: Value,
        does: impl IntoIterator<Item = String>,
        sets: Settings,
    ) {
        let part = does.into_iter().fold(Part::new(NAME, key, content), Part::doing);
        self.found.push((part, sets));
    }

    /// A switch that grants a right when true.
    fn switch(
        &mut self,
        key: &str,
        said: Option<bool>,
        does: &str,
        sets: impl Fn(Option<Setting<bool>>) -> Settings,
    ) {
        if said == Some(true) {
            self.add(key, json!(true), [does.to_owned()], sets(Some(Setting::new(true, self.origin))));
        }
    }

    /// What commands may reach and use up.
    fn sandbox(&mut self, network: Option<Network>, shell_limits: ShellLimits) {
        if network == Some(Network::On) {
            let does = "lets agents' commands use the network";
            let shell_network = Some(Setting::new(Network::On, self.origin));
            let sets = Settings { shell_network, ..none() };
            self.add("shell_network", json!("on"), [does.to_owned()], sets);
        }
        if !shell_limits.is_empty() {
            let does = format!("sets the limits of agents' commands ({shell_limits})");
            let content = self.raw["shell_limits"].clone();
            self.add("shell_limits", content, [does], Settings { shell_limits, ..none() });
        }
    }

    /// The roles besides `user` that inputs over HTTP may have.
    fn input_roles(&mut self, roles: Vec<InputRole>) {
        let input_roles: Vec<_> =
            roles.into_iter().map(Role::from).filter(|role| *role != Role::User).collect();
        if !input_roles.is_empty() {
            let names: Vec<_> = input_roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
            let does =
                format!("lets callers of `mainstem serve` send inputs of the role {}", names.join(", "));
            let content = self.raw["serve"]["input_roles"].clone();
            self.add("serve.input_roles", content, [does], Settings { input_roles, ..none() });
        }
    }

    fn prices(&mut self, prices: Option<Prices>) {
        if prices.is_some() {
            let does = "says what models cost, by which budgets of money are counted";
            let content = self.raw["prices"].clone();
            self.add("prices", content, [does.to_owned()], Settings { prices, ..none() });
        }
    }

    fn server(&mut self, name: &str, server: Server) {
        let said = &self.raw["mcp"][name];
        let does = server_does(name, said);
        let sets = Settings { mcp: [(name.to_owned(), Setting::new(server, self.origin))].into(), ..none() };
        self.add(format!("mcp.{name}"), said.clone(), does, sets);
    }

    /// How a vendor is reached: where prompts and the key go.
    fn provider(&mut self, name: &'static str, provider: Provider) {
        let said = |value: String| Setting::new(value, self.origin);
        let headers = provider.headers.into_iter();
        let access = Access {
            base_url: provider.base_url.map(said),
            api_key_env: provider.api_key_env.map(|variable| said(variable.0)),
            headers: headers.map(|(name, value)| (name, said(value.into_inner()))).collect(),
        };
        let does = access_does(name, &access);
        if does.is_empty() {
            return;
        }
        let sets = Settings { providers: [(name, access)].into(), ..none() };
        self.add(format!("providers.{name}"), self.raw["providers"][name].clone(), does, sets);
    }
}

fn access_does(name: &str, access: &Access) -> Vec<String> {
    let default = vendor(name).map_or("", |vendor| vendor.key);
    let key = access.api_key_env.as_ref().map(|said| &*said.value);
    let address = access.base_url.as_ref().map(|said| {
        let to = shown_address(&said.value);
        format!("sends what {name} is asked, and the key in {}, to {to}", key.unwrap_or(default))
    });
    let key = key.filter(|_| access.base_url.is_none());
    let key = key.map(|key| format!("sends {key} of the environment to {name}, as the key"));
    let headers = (!access.headers.is_empty()).then(|| {
        let names: Vec<_> = access.headers.keys().map(String::as_str).collect();
        let values = access.headers.values().map(|said| json!(said.value)).collect();
        with_variables(format!("sends headers to {name} ({})", names.join(", ")), &values)
    });
    address.into_iter().chain(key).chain(headers).collect()
}

/// Returns where the workspace leads if that is outside the folder of its file; a missing workspace
/// is reported later.
fn outside(folder: &Path, workspace: &Path) -> Option<String> {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let (folder, leads_to) = (folder.canonicalize().ok()?, workspace.canonicalize().ok()?);
    (!leads_to.starts_with(folder)).then(|| leads_to.display().to_string())
}

/// Resolves a server's directory relative to the file.
fn beside(mut server: Server, near: &Path) -> Server {
    if let Some(dir) = server.dir_mut() {
        *dir = near.join(&*dir);
    }
    server
}
