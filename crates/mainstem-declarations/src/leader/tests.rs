//! Who can lead.

use std::sync::Arc;

use mainstem_model::ScriptedModel;
use mainstem_spec::Mode;
use mainstem_subagent::{AgentFactory, Factory as _};

use super::*;

#[test]
fn an_agent_leads_unless_it_is_only_spawned() {
    let factory = AgentFactory::new(Arc::new(ScriptedModel::new()));
    let mut catalog = Catalog::default();
    let specs = [
        AgentSpec::new("boss", "d"),
        AgentSpec::new("ghost", "d").with_hidden(true),
        AgentSpec::new("hand", "d").with_mode(Mode::Subagent),
        AgentSpec::new("head", "d").with_mode(Mode::Primary),
    ];
    specs.into_iter().for_each(|spec| catalog.keep(factory.entry(spec).unwrap()));
    let check = |id: &str, expected: Result<&str, &str>| {
        let found = leader(&catalog, id).map(|spec| &*spec.id).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    };
    check("boss", Ok("boss"));
    check("ghost", Ok("ghost"));
    check("head", Ok("head"));
    check("hand", Err("\"hand\" can't be run: its mode is subagent"));
    check("bos", Err("unknown agent \"bos\"; known: boss, head; did you mean \"boss\"?"));
    check("nothing", Err("unknown agent \"nothing\"; known: boss, head"));
}
