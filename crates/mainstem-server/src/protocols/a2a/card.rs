//! The agent card: what the server is, in public, and which agents it has, for its callers.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use mainstem::{declarations::leader, subagent::CatalogEntry};
use mainstem_a2a::{
    extension,
    sdk::{
        A2AError, AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill,
        HttpAuthSecurityScheme, SecurityScheme, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
    },
};

use super::{Call, call::Place, refusal::Refusal, rpc::Answer};
use crate::{
    app::App,
    body::Path,
    caller::{Caller, VARY},
};

/// How long a client may use a card.
const MAX_AGE: HeaderValue = HeaderValue::from_static("private, max-age=60");

/// The media types of messages and artifacts.
const MODES: [&str; 2] = ["text/plain", "application/json"];

/// The name of the scheme of the server's tokens.
const SCHEME: &str = "bearer";

/// `GET /.well-known/agent-card.json`, which is public. On a server with tokens it names no agents;
/// they are in the extended card.
pub(super) async fn public(State(app): State<Arc<App>>, parts: Parts) -> Response {
    let (mut parts, app) = (parts, app);
    let Ok(place) = Place::from_request_parts(&mut parts, &app).await;
    if !app.tokens.is_empty() {
        return cached(general(&place));
    }
    match Caller::from_request_parts(&mut parts, &app).await {
        Ok(caller) => cached(whole(&app, &caller, &place)),
        Err(refused) => refused,
    }
}

/// `GET /a2a/{agent}/.well-known/agent-card.json`: the card of one agent.
pub(super) async fn of_agent(call: Call, Path(agent): Path<String>) -> Result<Response, Refusal> {
    Ok(cached(of(&call, Some(&agent))?))
}

/// `GetExtendedAgentCard`.
pub(super) fn extended(call: &Call, tenant: Option<&str>) -> Result<Answer, Refusal> {
    if call.app.tokens.is_empty() {
        return Err(Refusal::unsupported("the card of this server is complete; there is no extended one"));
    }
    Ok(Answer::json(of(call, tenant.filter(|agent| !agent.is_empty()))?))
}

fn of(call: &Call, agent: Option<&str>) -> Result<AgentCard, Refusal> {
    let mut card = whole(&call.app, &call.caller, &call.place);
    let Some(agent) = agent else { return Ok(card) };
    let own = card.skills.first().is_some_and(|skill| skill.id == agent);
    let skill = card.skills.iter().find(|skill| skill.id == agent);
    let can_lead = own || call.app.served.agents.contains(agent);
    let skill = skill.filter(|_| can_lead).cloned();
    let skill =
        skill.ok_or_else(|| A2AError::invalid_params(format!("this server runs no agent {agent:?}")))?;
    card.name.clone_from(&skill.name);
    card.description.clone_from(&skill.description);
    card.skills = vec![skill];
    card.supported_interfaces.iter_mut().for_each(|interface| interface.tenant = Some(agent.to_owned()));
    Ok(card)
}

fn cached(card: AgentCard) -> Response {
    ([(header::CACHE_CONTROL, MAX_AGE), VARY], Json(card)).into_response()
}

/// The card that names no agent, for those who have shown no token.
fn general(place: &Place) -> AgentCard {
    let scheme =
        HttpAuthSecurityScheme { scheme: "Bearer".to_owned(), description: None, bearer_format: None };
    let description = "Agents that work as a fleet. The extended card names them.";
    let skill = skill("agents", "Agents", description);
    AgentCard {
        security_schemes: Some([(SCHEME.to_owned(), SecurityScheme::HttpAuth(scheme))].into()),
        security_requirements: Some(vec![HashMap::from([(SCHEME.to_owned(), Vec::new())])]),
        ..card("Mainstem", description, vec![skill], place, true)
    }
}

/// The card with the caller's agents as skills, first the one that leads by default.
fn whole(app: &App, caller: &Caller, place: &Place) -> AgentCard {
    let agents = caller.harness.agents();
    let own = agents.root();
    let description = agents.catalog().get(own.id()).map(|entry| entry.spec.description.clone());
    let description =
        description.unwrap_or_else(|| format!("Leads the runs of this server as {}.", own.name()));
    let others =
        agents.catalog().iter().filter(|entry| entry.spec.is_listed() && entry.spec.id != **own.id());
    let others = others.map(|entry: &CatalogEntry| {
        let can_lead =
            app.served.agents.contains(&entry.spec.id) && leader(agents.catalog(), &entry.spec.id).is_ok();
        let mut skill = skill(&entry.spec.id, &entry.spec.id, &entry.spec.description);
        skill.tags.extend(can_lead.then(|| "tenant".to_owned()));
        skill
    });
    let first = skill(own.id(), own.name(), &description);
    let skills = std::iter::once(first).chain(others).collect();
    let has_tokens = !app.tokens.is_empty();
    let card = card(own.name(), &description, skills, place, has_tokens);
    if !has_tokens {
        return card;
    }
    let AgentCard { security_schemes, security_requirements, .. } = general(place);
    AgentCard { security_schemes, security_requirements, ..card }
}

fn card(name: &str, description: &str, skills: Vec<AgentSkill>, place: &Place, extended: bool) -> AgentCard {
    let events = AgentExtension {
        uri: extension::URI.to_owned(),
        description: Some(
            "Each status update has the event that caused it, with the agent it is of.".to_owned(),
        ),
        required: Some(false),
        params: None,
    };
    let bindings = [TRANSPORT_PROTOCOL_JSONRPC, TRANSPORT_PROTOCOL_HTTP_JSON];
    let modes = || MODES.map(str::to_owned).to_vec();
    AgentCard {
        name: name.to_owned(),
        description: description.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        supported_interfaces: bindings.map(|binding| AgentInterface::new(place.url(), binding)).to_vec(),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extensions: Some(vec![events]),
            extended_agent_card: Some(extended),
        },
        default_input_modes: modes(),
        default_output_modes: modes(),
        skills,
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

fn skill(id: &str, name: &str, description: &str) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec!["agent".to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}
