//! The clients of one session: each kind of visit, and what it has to find.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{
    player::{HANG, LONG, SPAWN},
    rig::{Rig, ms},
};

/// How many runs [`Client::visit`] begins in one session.
pub(crate) const RUNS: usize = 20;

/// A client of one session.
pub(crate) struct Client<'a> {
    rig: &'a Rig,
    session: String,
}

impl<'a> Client<'a> {
    pub(crate) fn new(rig: &'a Rig, session: String) -> Self {
        Self { rig, session }
    }

    /// Begins [`RUNS`] runs of all kinds; returns how long those took that were only waited for.
    pub(crate) async fn visit(&self) -> Vec<Duration> {
        let mut took = Vec::new();
        for _ in 0..RUNS / 10 {
            took.push(self.waits().await);
            self.reads().await;
            took.push(self.waits().await);
            self.leaves().await;
            self.cancels().await;
            took.push(self.waits().await);
            self.spawns().await;
            self.comes_twice().await;
            took.push(self.waits().await);
        }
        took
    }

    /// Deletes the session as soon as its background tasks are over.
    pub(crate) async fn delete(&self) {
        let path = format!("/v1/sessions/{}", self.session);
        let delete = async || self.rig.ask(Method::DELETE, &path).send().await.unwrap().status() == 204;
        eventually(&format!("{path} is deleted"), delete).await;
    }

    /// JSON, with `Prefer: wait`.
    async fn waits(&self) -> Duration {
        let begun = Instant::now();
        let run = json_of(self.begin("go", false).header("prefer", "wait=30")).await;
        assert_eq!((&run["status"], &run["reply"]), (&json!("success"), &json!("ok")), "{run}");
        begun.elapsed()
    }

    /// Server-sent events, to the end.
    async fn reads(&self) {
        let text = self.stream(LONG).await.text().await.unwrap();
        assert!(text.contains("\nevent: AGENT_RESULT") && text.contains("\nevent: end\n"), "{text}");
    }

    /// Server-sent events, until the connection is dropped in the middle.
    async fn leaves(&self) {
        let mut stream = self.stream(LONG).await;
        let place = stream.headers()["location"].to_str().unwrap().to_owned();
        assert!(stream.chunk().await.unwrap().is_some());
        drop(stream);
        self.ends(&place, "success").await;
    }

    /// A cancel while the model speaks.
    async fn cancels(&self) {
        let (stream, place) = self.hangs().await;
        assert_eq!(self.rig.post(&format!("{place}/cancel"), json!({})).await.status(), 202);
        assert!(stream.text().await.unwrap().contains("event: end"));
        self.ends(&place, "cancelled").await;
    }

    /// A run whose model stops after one word. Before that word, its input would be answered in the
    /// next run.
    async fn hangs(&self) -> (Response, String) {
        let mut stream = self.stream(HANG).await;
        let place = stream.headers()["location"].to_str().unwrap().to_owned();
        let mut text = String::new();
        while !text.contains("Well.") {
            text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
        }
        (stream, place)
    }

    /// A run that starts a background task and does not wait for it.
    async fn spawns(&self) {
        let run = json_of(self.begin(SPAWN, false).header("prefer", "wait=30")).await;
        assert_eq!(run["status"], "success", "{run}");
    }

    /// A second run is refused, then queued.
    async fn comes_twice(&self) {
        let (_stream, first) = self.hangs().await;
        let refused = self.begin("go", false).send().await.unwrap();
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "run_active");
        let second = json_of(self.begin("go", true)).await;
        assert_eq!(second["status"], "queued", "{second}");
        let second = format!("/v1/runs/{}", second["id"].as_str().unwrap());
        assert_eq!(self.rig.post(&format!("{first}/cancel"), json!({})).await.status(), 202);
        self.ends(&first, "cancelled").await;
        self.ends(&second, "success").await;
    }

    fn begin(&self, input: &str, queue: bool) -> RequestBuilder {
        let request = self.rig.ask(Method::POST, &format!("/v1/sessions/{}/runs", self.session));
        request.json(&json!({ "input": input, "queue": queue }))
    }

    async fn stream(&self, input: &str) -> Response {
        let response = self.begin(input, false).header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Waits until a run has ended so.
    async fn ends(&self, place: &str, status: &str) {
        let mut run = Value::Null;
        eventually(&format!("{place} is over"), async || {
            run = self.rig.get_json(place).await;
            run["status"] != "running" && run["status"] != "queued"
        })
        .await;
        assert_eq!(run["status"], status, "{run}");
    }
}

async fn json_of(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    assert!(status.is_success(), "{status}: {body}");
    body
}

/// Waits until something holds, at most 20 seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < ms(20_000), "not within 20 s: {what}");
        tokio::time::sleep(ms(5)).await;
    }
}
