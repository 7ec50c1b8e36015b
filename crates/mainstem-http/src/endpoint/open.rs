//! Opens the response to a request.

use mainstem_model::{ModelError, ModelRequest, message::RateLimits};

use crate::{
    Api, Dialect, Endpoint,
    rate_limits::rate_limits,
    response::{Refusal, ResponseBody, begin, send},
};

/// Sends the request; returns the response, and the limits that its head reports. If the error
/// shows a known deviation of the server, adapts the body and sends it again; the dialect only
/// gains deviations, so the loop ends.
pub(super) async fn open<A: Api>(
    endpoint: Endpoint<A>,
    request: ModelRequest,
) -> Result<(RateLimits, ResponseBody), ModelError> {
    let Endpoint { model, server, http, api, .. } = &endpoint;
    let mut dialect = endpoint.dialect();
    loop {
        let body = api.body(model, &request, &dialect).map_err(|what| server.unsupported(&what))?;
        let refusal = match send(http, server, body).await? {
            Ok(response) => {
                let limits = rate_limits(response.headers());
                let body = begin::<A>(server, response, api.whole(&request, &dialect)).await?;
                return Ok((limits, body));
            }
            Err(refusal) => refusal,
        };
        let Some(adapted) = dialect.adapted_to(&refusal.error) else {
            return Err(into_error(&endpoint, refusal));
        };
        endpoint.remember_dialect(adapted.lasting());
        dialect = adapted;
    }
}

fn into_error<A: Api>(endpoint: &Endpoint<A>, mut refusal: Refusal) -> ModelError {
    let advice = A::advice(&endpoint.model, &endpoint.server, &refusal.error);
    refusal.error.message.extend(advice);
    refusal.into_error(&endpoint.server)
}
