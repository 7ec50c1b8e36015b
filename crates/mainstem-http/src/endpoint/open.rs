//! From a request to the beginning of an answer.

use mainstem_model::{ModelError, ModelRequest};

use crate::{
    Api, Dialect, Endpoint,
    answer::{Answer, Refusal, ask, begin},
};

/// Asks, and asks again in the server's dialect if its refusal teaches one.
pub(super) async fn open<A: Api>(endpoint: Endpoint<A>, request: ModelRequest) -> Result<Answer, ModelError> {
    let Endpoint { model, server, http, api, .. } = &endpoint;
    let mut dialect = endpoint.dialect();
    loop {
        let body = api.body(model, &request, &dialect).map_err(|what| server.unsupported(&what))?;
        let refusal = match ask(http, server, body).await? {
            Ok(response) => return begin::<A>(server, response, api.whole(&request, &dialect)).await,
            Err(refusal) => refusal,
        };
        let Some(heeding) = dialect.heeding(&refusal.complaint) else {
            return Err(refused(&endpoint, refusal));
        };
        endpoint.learn(heeding.lasting());
        dialect = heeding;
    }
}

fn refused<A: Api>(endpoint: &Endpoint<A>, mut refusal: Refusal) -> ModelError {
    let advice = A::advice(&endpoint.model, &endpoint.server, &refusal.complaint);
    refusal.complaint.message.extend(advice);
    refusal.into_error(&endpoint.server)
}
