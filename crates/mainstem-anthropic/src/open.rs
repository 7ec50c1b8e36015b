//! From a request to the beginning of an answer.

use mainstem_http::{Answer, ask, begin};
use mainstem_model::{ModelError, ModelRequest};

use crate::{Anthropic, decoder::MESSAGES, dialect::refuses_sampling, request};

/// Asks, and asks again without what this model refuses.
pub(crate) async fn open(model: Anthropic, request: ModelRequest) -> Result<Answer, ModelError> {
    loop {
        let dialect = model.dialect();
        let body = request::body(&model, &request, dialect)?;
        match ask(&model.http, &model.server, body).await? {
            Ok(response) => return begin(&model.server, response, None, &MESSAGES).await,
            Err(refusal) if !dialect.no_sampling && refuses_sampling(&refusal.complaint) => {
                model.learn_no_sampling();
            }
            Err(refusal) => return Err(refusal.into_error(&model.server)),
        }
    }
}
