//! Approvals by elicitation: the client's user decides about tool calls of agents.

use mainstem_api::AnySession;
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCall};
use rmcp::{
    RoleServer,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema},
    service::{ElicitationMode, Peer},
};

/// The field of the form.
const FIELD: &str = "allow";

/// The longest arguments in a question, in characters.
const LONGEST: usize = 2_000;

/// Returns `true` if the client can put a question to its user.
pub(super) fn can_ask(client: &Peer<RoleServer>) -> bool {
    client.supported_elicitation_modes().contains(&ElicitationMode::Form)
}

/// Asks the client's user about calls, and answers the request for approval.
pub(super) async fn answer(
    client: &Peer<RoleServer>,
    session: &dyn AnySession,
    agent: &str,
    id: ConfirmId,
    calls: &[ToolCall],
) {
    let decision = ask(client, agent, calls).await;
    if let Err(error) = session.confirm(&id, decision).await {
        tracing::debug!(%error, "an approval came too late");
    }
}

async fn ask(client: &Peer<RoleServer>, agent: &str, calls: &[ToolCall]) -> Decision {
    let schema = ElicitationSchema::builder().required_bool(FIELD).build();
    let Ok(requested_schema) = schema else {
        return Decision::Deny("the form could not be built".to_owned());
    };
    let message = question(agent, calls);
    let request = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    match client.create_elicitation(request).await {
        Ok(result) => decision(&result),
        Err(error) => Decision::Deny(format!("the client could not ask its user: {error}")),
    }
}

fn question(agent: &str, calls: &[ToolCall]) -> String {
    let line = |call: &ToolCall| {
        let arguments: String = call.arguments.chars().take(LONGEST).collect();
        format!("\n{} {arguments}", call.name)
    };
    format!("{agent} asks to run:{}", calls.iter().map(line).collect::<String>())
}

fn decision(result: &ElicitResult) -> Decision {
    let is_allowed = result.content.as_ref().is_some_and(|content| content[FIELD] == true);
    match result.action {
        ElicitationAction::Accept if is_allowed => Decision::Allow,
        ElicitationAction::Cancel => Decision::Deny("the question was dismissed".to_owned()),
        _ => Decision::Deny("the user denied it".to_owned()),
    }
}
