//! From a request to the beginning of an answer.

use mainstem_http::{Answer, ask, begin};
use mainstem_model::{ModelError, ModelRequest};

use crate::{OpenAi, decoder::CHAT, request};

/// Asks, and asks again in the server's dialect where its refusal teaches one.
pub(crate) async fn open(model: OpenAi, request: ModelRequest) -> Result<Answer, ModelError> {
    let mut dialect = model.dialect();
    loop {
        let body = request::body(&model, &request, &dialect)?;
        let refusal = match ask(&model.http, &model.server, body).await? {
            Ok(response) => return begin(&model.server, response, dialect.whole, &CHAT).await,
            Err(refusal) => refusal,
        };
        let Some(heeding) = dialect.heeding(&refusal.complaint) else {
            return Err(refusal.into_error(&model.server));
        };
        model.learn(&heeding);
        dialect = heeding;
    }
}
