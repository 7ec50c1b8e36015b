//! Opens the response to a request.

use std::sync::Arc;

use mainstem_model::{
    ModelError, ModelRequest,
    message::{ContentBlock, RateLimits},
};

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
        let body = api.body(model, &request, &dialect).map_err(|what| {
            let is_about_data = api.body(model, &without_data(request.clone()), &dialect).is_ok();
            server.unsupported(&what).with_about_data(is_about_data)
        })?;
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

/// Returns the request without the data of its messages, and of results within them.
fn without_data(mut request: ModelRequest) -> ModelRequest {
    let is_text = |block: &ContentBlock| !matches!(block, ContentBlock::Data { .. });
    for message in &mut request.messages {
        let message = Arc::make_mut(message);
        message.content.retain(is_text);
        for block in &mut message.content {
            if let ContentBlock::ToolResult(result) = block {
                result.content.retain(is_text);
            }
        }
    }
    request
}

fn into_error<A: Api>(endpoint: &Endpoint<A>, mut refusal: Refusal) -> ModelError {
    let advice = A::advice(&endpoint.model, &endpoint.server, &refusal.error);
    refusal.error.message.extend(advice);
    refusal.into_error(&endpoint.server)
}
