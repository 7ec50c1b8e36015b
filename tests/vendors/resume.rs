//! Answers that are read on after a cut: OpenAI's background responses, in the vendor's events.
//!
//! The server is told to write in the background by a field of the request, as it would be by
//! `OnCut::Resume` at OpenAI's own address.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use mainstem::{
    message::StopReason,
    model::{IdleTimeout, Model, ModelDelta, ModelOptions, ModelRequest, OnCut, Retry, RetryPolicy},
    openai::{OpenAiResponses, service::AZURE},
    prelude::*,
};
use mainstem_testing::{
    raw::{Seen, Server, Step, chunk, head, whole},
    render,
};
use serde_json::{Value, json};

use crate::faults::{conversation, ms, run};

const ID: &str = "resp_1";

fn reasoning() -> Value {
    json!({
        "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAAA",
        "summary": [{ "type": "summary_text", "text": "Ich denke." }, { "type": "summary_text", "text": "Weiter." }],
    })
}

fn message() -> Value {
    let content = json!([{ "type": "output_text", "text": "Grüße an alle", "annotations": [] }]);
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content })
}

fn call() -> Value {
    json!({
        "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "status": "completed",
        "arguments": "{\"at\":\"the ünïcode\"}",
    })
}

/// A response with this status, as the vendor sends it at the beginning, at the end and when asked.
fn response(status: &str) -> Value {
    let is_over = status == "completed";
    let output = if is_over { json!([reasoning(), message(), call()]) } else { json!([]) };
    let usage = is_over.then(|| json!({ "input_tokens": 12, "output_tokens": 7, "total_tokens": 19 }));
    json!({
        "id": ID, "object": "response", "status": status, "background": true, "store": true,
        "error": null, "incomplete_details": null, "model": "main", "output": output,
        "reasoning": { "effort": "medium", "summary": "auto" }, "usage": usage,
    })
}

fn begun(mut item: Value) -> Value {
    for field in ["content", "summary"] {
        item.as_object_mut().unwrap().entry(field).and_modify(|list| *list = json!([]));
    }
    item.as_object_mut().unwrap().entry("arguments").and_modify(|text| *text = json!(""));
    item
}

/// The events of an answer with reasoning, a text and a call, each with its number.
fn events() -> Vec<String> {
    let mut events = vec![
        json!({ "type": "response.created", "response": response("queued") }),
        json!({ "type": "response.in_progress", "response": response("in_progress") }),
    ];
    let mut item = |index: u64, item: Value, kind: &str, pieces: &[&str]| {
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": begun(item.clone()) }));
        for (part, piece) in pieces.iter().enumerate() {
            if kind == "reasoning_summary_text" {
                let part = json!({
                    "type": "response.reasoning_summary_part.added", "output_index": index,
                    "summary_index": part, "part": { "type": "summary_text", "text": "" },
                });
                events.push(part);
            }
            events.push(
                json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": piece }),
            );
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    };
    item(0, reasoning(), "reasoning_summary_text", &["Ich denke.", "Weiter."]);
    item(1, message(), "output_text", &["Grü", "ße ", "an ", "alle"]);
    item(2, call(), "function_call_arguments", &["{\"at\":", "\"the ünï", "code\"}"]);
    events.push(json!({ "type": "response.completed", "response": response("completed") }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(Value::to_string).collect()
}

fn frames(events: &[String]) -> Vec<u8> {
    let name =
        |event: &str| serde_json::from_str::<Value>(event).unwrap()["type"].as_str().unwrap().to_owned();
    events
        .iter()
        .flat_map(|event| format!("event: {}\ndata: {event}\n\n", name(event)).into_bytes())
        .collect()
}

/// A stream that is cut behind these bytes.
fn cut(bytes: &[u8]) -> Vec<Step> {
    let headers = "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n";
    vec![head("200 OK", headers), chunk(bytes)]
}

fn complete(events: &[String]) -> Vec<Step> {
    let mut steps = cut(&frames(events));
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

fn state(status: &str) -> Vec<Step> {
    whole("200 OK", "content-type: application/json\r\n", &response(status).to_string())
}

fn refused(status: &str, message: &str) -> Vec<Step> {
    let error = json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null } });
    whole(status, "content-type: application/json\r\n", &error.to_string())
}

fn too_old() -> Vec<Step> {
    refused(
        "400 Bad Request",
        "This response can no longer be streamed because it is more than 5 minutes old.",
    )
}

/// The answer to the tool's result, which is not cut.
fn said() -> Vec<Step> {
    let item =
        json!({ "id": "msg_2", "type": "message", "content": [{ "type": "output_text", "text": "42." }] });
    let response = json!({ "id": "resp_2", "status": "completed", "output": [item], "usage": null });
    let done = json!({ "type": "response.completed", "sequence_number": 1, "response": response });
    complete(&[done.to_string()])
}

struct Background(OpenAiResponses);

impl Model for Background {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn stream(&self, mut request: ModelRequest) -> mainstem::model::ModelStream {
        let mut options = (*request.options).clone();
        options.extra.extend([("background".to_owned(), json!(true)), ("store".to_owned(), json!(true))]);
        request.options = Arc::new(options);
        self.0.stream(request)
    }
}

fn model(server: &Server) -> Background {
    let url = format!("{}/v1", server.url());
    Background(OpenAiResponses::new("main").with_api_key("k").with_base_url(&url).unwrap())
}

/// Repeats a call at once, and bears the wait between two requests for a state.
fn patient(model: impl Model) -> impl Model {
    let mut policy = RetryPolicy::default();
    (policy.attempts, policy.min_wait, policy.jitter) = (2, ms(1), false);
    Retry::with_policy(IdleTimeout::new(model, Duration::from_secs(8)), policy)
}

/// The first lines of the requests that the server got.
async fn requests(server: &mut Server, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let request = server.request().await;
        lines.push(request.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned());
    }
    lines
}

/// Runs an answer that comes in these pieces, and checks that it is the whole one, said once.
async fn check(first: Vec<Step>, later: Vec<Vec<Step>>) -> (Vec<AgentEvent>, Vec<String>) {
    let whole = Server::start(vec![complete(&events()), said()]).await;
    let expected = conversation(&run(patient(model(&whole))).await);
    let count = later.len() + 2;
    let script = [vec![first], later, vec![said()]].concat();
    let mut server = Server::start(script).await;
    let seen = run(patient(model(&server))).await;
    let text = render(&seen);
    assert!(!text.contains("MODEL_RETRY"), "{text}");
    assert_eq!(conversation(&seen), expected, "{text}");
    let requests = requests(&mut server, count).await;
    assert_eq!(requests.iter().filter(|line| *line == "POST /v1/responses").count(), 2, "{requests:?}");
    (seen, requests)
}

/// Returns how many events came whole before a cut.
fn whole_events(events: &[String], at: usize) -> usize {
    (0..=events.len()).rev().find(|count| frames(&events[..*count]).len() <= at).unwrap()
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_read_on() {
    let (events, body) = (events(), frames(&events()));
    let step = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 97 };
    for at in (frames(&events[..1]).len()..body.len() - 2).step_by(step) {
        let came = whole_events(&events, at);
        let (_, requests) = check(cut(&body[..at]), vec![complete(&events[came..])]).await;
        let query =
            format!("include%5B%5D=reasoning.encrypted_content&stream=true&starting_after={}", came - 1);
        assert_eq!(requests[1], format!("GET /v1/responses/{ID}?{query}"), "cut at {at}");
    }
}

#[tokio::test]
async fn a_rest_is_cut_refused_and_repeated() {
    let events = events();
    // Twice, with an event that came before.
    let again = [cut(&frames(&events[3..7])), complete(&events[5..])];
    check(cut(&frames(&events[..5])), again.to_vec()).await;
    // Faults that pass: a server that is down, and one that has too much to do.
    let passing = [refused("503 Service Unavailable", ""), vec![], refused("429 Too Many Requests", "")];
    let later = [passing.as_slice(), &[complete(&events[9..])]].concat();
    check(cut(&frames(&events[..9])), later).await;
}

#[tokio::test]
async fn a_stream_that_the_vendor_has_no_longer_is_polled() {
    let events = events();
    for came in 1..events.len() {
        let later = vec![too_old(), state("completed")];
        let (_, requests) = check(cut(&frames(&events[..came])), later).await;
        let path = format!("GET /v1/responses/{ID}?include%5B%5D=reasoning.encrypted_content");
        assert_eq!(requests[2], path, "after {came} events");
    }
    // After streams that bring nothing.
    // Streams of what came before, or of no events, are such.
    let nothing = [
        complete(&[]),
        cut(&frames(&events[2..5])),
        cut(b"data: [DONE]\n\n"),
        refused("502 Bad Gateway", ""),
        complete(&events[..10]),
    ];
    check(cut(&frames(&events[..10])), [nothing.to_vec(), vec![state("completed")]].concat()).await;
    // A body that is not a state is requested again.
    let odd = |body: &str| whole("200 OK", "content-type: application/json\r\n", body);
    let later = vec![too_old(), odd("{}"), odd("<html>"), state("completed")];
    check(cut(&frames(&events[..10])), later).await;
    for (shown, rest) in [("completed", vec![]), ("in_progress", vec![complete(&events[10..])])] {
        let later = [vec![complete(&[]); 5], vec![state(shown)], rest].concat();
        check(cut(&frames(&events[..10])), later).await;
    }
    // Until it is complete.
    let later = vec![too_old(), state("in_progress"), refused("500 Oops", ""), state("completed")];
    check(cut(&frames(&events[..10])), later).await;
}

#[tokio::test]
async fn a_response_that_the_vendor_has_lost_is_repeated() {
    let events = events();
    let lost = || refused("404 Not Found", "Response with id 'resp_1' not found.");
    // The request that cancels may come before or after the one that repeats: both can get this.
    let either = || state("completed");
    let down = || refused("502 Bad Gateway", "");
    for failures in [vec![lost(), lost()], vec![down(); 10]] {
        let count = failures.len();
        let script = [vec![cut(&frames(&events[..9]))], failures, vec![either(), either(), said()]];
        let mut server = Server::start(script.concat()).await;
        let seen = run(patient(model(&server))).await;
        let text = render(&seen);
        assert!(text.contains("MODEL_RETRY #1") && text.contains("takes back"), "{text}");
        assert!(text.contains("AGENT_RESULT \"42.\""), "{text}");
        let requests = requests(&mut server, count + 3).await;
        let cancel = format!("POST /v1/responses/{ID}/cancel");
        assert_eq!(requests.iter().filter(|line| **line == cancel).count(), 1, "{requests:?}");
    }
}

#[tokio::test]
async fn without_numbers_a_cut_response_is_repeated() {
    let unnumbered = |events: Vec<String>| -> Vec<String> {
        let strip = |event: String| {
            let mut event: Value = serde_json::from_str(&event).unwrap();
            event.as_object_mut().unwrap().remove("sequence_number");
            event.to_string()
        };
        events.into_iter().map(strip).collect()
    };
    let events = unnumbered(events());
    let server = Server::start(vec![cut(&frames(&events[..9])), complete(&events), said()]).await;
    let text = render(&run(patient(model(&server))).await);
    assert!(text.contains("MODEL_RETRY #1") && text.contains("AGENT_RESULT \"42.\""), "{text}");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_vendor() {
    let open = [cut(&frames(&events()[..9])), vec![Step::AwaitClose]].concat();
    let mut server = Server::start(vec![open, whole("200 OK", "", "{}")]).await;
    let mut stream = model(&server).stream(ModelRequest::default());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Thinking("Ich denke.".to_owned()));
    drop(stream);
    server.request().await;
    assert_eq!(server.next().await, Seen::Closed);
    assert!(server.request().await.starts_with(&format!("POST /v1/responses/{ID}/cancel ")));

    // One that is over is not.
    let server = Server::start(vec![complete(&events()), whole("200 OK", "", "{}")]).await;
    let deltas: Vec<_> = model(&server).stream(ModelRequest::default()).collect().await;
    assert!(matches!(deltas.last(), Some(Ok(ModelDelta::Stop(StopReason::ToolCalls)))), "{deltas:?}");
    let mut server = server;
    assert!(server.request().await.starts_with("POST /v1/responses "));
    tokio::time::timeout(ms(200), server.next()).await.expect_err("nothing more is requested");
}

#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let events = events();
    let silent = [cut(&frames(&events[..9])), vec![Step::AwaitClose]].concat();
    let mut server = Server::start(vec![silent, state("in_progress"), complete(&events[9..])]).await;
    let mut stream = model(&server).stream(ModelRequest::default());
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.push(stream.next().await.unwrap().unwrap());
    }
    tokio::time::pause();
    let silent = tokio::time::timeout(Duration::from_secs(29), stream.next()).await;
    silent.expect_err("29 s are no silence");
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    let rest: Vec<_> = stream.map(Result::unwrap).collect().await;
    assert_eq!(rest[0], ModelDelta::InProgress);
    let texts = seen.iter().chain(&rest).filter_map(|delta| match delta {
        ModelDelta::Text(text) => Some(&**text),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "Grüße an alle");
    let requests = requests(&mut server, 3).await;
    assert_eq!(requests[1], format!("GET /v1/responses/{ID}?include%5B%5D=reasoning.encrypted_content"));
    assert!(requests[2].ends_with("starting_after=8"), "{requests:?}");
}

#[tokio::test]
async fn only_a_vendor_that_can_is_asked_to_store() {
    let mut options = ModelOptions::new();
    options.on_cut = Some(OnCut::Resume);
    let request = || ModelRequest { options: Arc::new(options.clone()), ..ModelRequest::default() };
    let body =
        |request: &str| serde_json::from_str::<Value>(request.split_once("\r\n\r\n").unwrap().1).unwrap();

    // An organization whose data is not retained: the request is repeated, and later ones differ.
    let why = "Background mode cannot be used for this organization due to Zero Data Retention.";
    let mut server = Server::start(vec![refused("400 Bad Request", why), said(), said()]).await;
    let url = server.url();
    let var = |name: &str| match name {
        "AZURE_OPENAI_API_KEY" => Some("k".to_owned()),
        "AZURE_OPENAI_ENDPOINT" => Some(url.clone()),
        _ => None,
    };
    let azure = OpenAiResponses::of_service(&AZURE, "main", var).unwrap();
    for _ in 0..2 {
        let deltas: Vec<_> = azure.stream(request()).collect().await;
        assert!(deltas.iter().all(Result::is_ok), "{deltas:?}");
    }
    let mut stored = Vec::new();
    for _ in 0..3 {
        let body = body(&server.request().await);
        stored.push((body["background"].clone(), body["store"].clone()));
    }
    let never = (Value::Null, json!(false));
    assert_eq!(stored, [(json!(true), json!(true)), never.clone(), never.clone()]);

    // A server that is not known to write in the background.
    let mut server = Server::start(vec![said()]).await;
    let url = format!("{}/v1", server.url());
    let other = OpenAiResponses::new("main").with_api_key("k").with_base_url(&url).unwrap();
    let _: Vec<_> = other.stream(request()).collect().await;
    let body = body(&server.request().await);
    assert_eq!((body["background"].clone(), body["store"].clone()), never);
}
