//! From a request to the beginning of an answer.

use std::sync::Arc;

use mainstem_http::{Answer, Api, Complaint, Http, Server, ask, begin};
use mainstem_model::ModelError;

/// In what a server differs from its standard, found by what it complains about.
pub(crate) trait Heed: Sized {
    /// The dialect that heeds a complaint; `None` if there is nothing (more) to heed, and the complaint is the answer.
    fn heeding(&self, complaint: &Complaint) -> Option<Self>;

    /// Why the answer comes in one piece, if it does.
    fn into_whole(self) -> Option<Arc<str>>;
}

/// Asks, and asks again in the server's dialect where its refusal teaches one.
pub(crate) async fn open<D: Heed>(
    http: &Http,
    server: &Server,
    api: &Api,
    mut dialect: D,
    body: impl Fn(&D) -> Result<Vec<u8>, ModelError>,
    learn: impl Fn(&D),
) -> Result<Answer, ModelError> {
    loop {
        let refusal = match ask(http, server, body(&dialect)?).await? {
            Ok(response) => return begin(server, response, dialect.into_whole(), api).await,
            Err(refusal) => refusal,
        };
        let Some(heeding) = dialect.heeding(&refusal.complaint) else {
            return Err(refusal.into_error(server));
        };
        learn(&heeding);
        dialect = heeding;
    }
}
