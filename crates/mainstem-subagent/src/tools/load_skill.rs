//! `load_skill`: instructions for a particular task.

use std::sync::Arc;

use mainstem_spec::Skill;
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::SpawnError, member::Member};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Load {
    /// Which skill to read.
    name: String,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Read a skill: instructions for a particular task. The result names the files that belong to it, as paths in \
                       the workspace; read those that you need.";
    let load = tool_fn("load_skill", description, |cx, Load { name }| async move {
        let (_, member) = Member::of_call(&cx)?;
        let known: Vec<_> = member.skills().collect();
        let skill = known.iter().find(|skill| skill.name == name).ok_or_else(|| {
            SpawnError::UnknownSkill { name, known: known.iter().map(|skill| skill.name.clone()).collect() }
        })?;
        Ok::<_, SpawnError>(text(skill))
    });
    Arc::new(load.with_read_only(true).with_lasting(true))
}

fn text(skill: &Skill) -> String {
    let Skill { name, files, body, .. } = skill;
    let files = if files.is_empty() { String::new() } else { format!("files: {}\n", files.join(", ")) };
    format!("skill: {name}\n{files}\n{body}")
}
