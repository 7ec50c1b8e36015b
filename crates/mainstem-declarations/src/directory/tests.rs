//! A family of agents, and the directory of each.

use std::path::Path;

use super::*;

/// An agent by its path of ids below the root; its key and its session are named like the path,
/// with `~` for the slash, which an id can't have.
fn agent(path: &str) -> EventSource {
    let (parent, id) = path.rsplit_once('/').unwrap_or(("root", path));
    let named = |path: &str| path.replace('/', "~");
    EventSource {
        agent_key: named(path).parse().unwrap(),
        agent_id: id.into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: named(path).parse().unwrap(),
        parent_session_id: named(parent).parse().unwrap(),
        depth: path.split('/').count() as u16,
        path: format!("s/{path}").into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 1,
    }
}

fn specs() -> Vec<AgentSpec> {
    let spec = |id: &str| AgentSpec::new(id, "");
    vec![
        spec("own"),
        spec("shared").with_workspace_mode(WorkspaceMode::Shared),
        spec("other").with_workspace_mode(WorkspaceMode::Shared),
        spec("named").with_workspace_path("team").with_origin(Origin::File("named.md".into())),
        spec("code").with_workspace_path("/anywhere"),
        spec("prompted").with_workspace_path("team").with_workspace_mode(WorkspaceMode::Shared),
    ]
}

#[test]
fn an_agent_works_where_the_nearest_above_it_does_that_shares_nothing() {
    let specs = specs();
    let check = |path: &str, expected: WorkingDirectory| {
        let spec = |key: &AgentKey| {
            let id = key.as_str().rsplit('~').next()?;
            specs.iter().find(|spec| spec.id == id).cloned().map(Arc::new)
        };
        let is_known = |session: &SessionId| !session.as_str().split('~').any(|id| id == "tool");
        let found = working_directory(agent(path), spec, |session| {
            Some(agent(&session.as_str().replace('~', "/"))).filter(|_| is_known(session))
        });
        assert_eq!(found, expected, "{path}");
    };
    let named = |path: &str, is_in_code| WorkingDirectory::Named { path: Path::new(path).into(), is_in_code };
    let own = |path: &str| WorkingDirectory::Own(agent(path));
    check("own", own("own"));
    check("shared", WorkingDirectory::Root);
    check("shared/other", WorkingDirectory::Root);
    check("shared/other/shared", WorkingDirectory::Root);
    check("shared/own", own("shared/own"));
    check("own/shared", own("own"));
    check("own/shared/other", own("own"));
    check("own/own", own("own/own"));
    check("own/own/shared", own("own/own"));
    check("named", named("team", false));
    check("named/shared", named("team", false));
    check("own/named/shared", named("team", false));
    check("code/shared", named("/anywhere", true));
    // It has its prompt from there, and works where its parent does.
    check("prompted", WorkingDirectory::Root);
    check("own/prompted", own("own"));
    // A tool of the program: not in the catalog, and not among the children.
    check("tool", own("tool"));
    check("tool/own", own("tool/own"));
    check("tool/shared", own("tool/shared"));
}
