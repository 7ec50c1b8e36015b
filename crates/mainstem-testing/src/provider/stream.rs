//! Requests, and the time of deltas.

use std::{
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_http::{Api, Client, Form};
use mainstem_message::{StopReason, Usage};
use mainstem_model::{ErrorKind, Model, ModelDelta, ModelRequest};
use tokio::{
    task::coop,
    time::{sleep, timeout},
};

use super::{Sample, answer, check, model, question, streamed};
use crate::raw::{Seen, Server, Step, head, whole};

/// A delta is yielded before more comes, and dropping the stream closes the connection.
pub async fn a_delta_arrives_before_the_server_goes_on<A: Api>(sample: Sample) {
    let mut script = streamed::<A>(&[sample.text]);
    script.insert(2, Step::AwaitClose);
    let mut server = Server::start(vec![script]).await;
    let mut stream = model::<A>(&server).stream(question());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("Hi".into()));
    assert!(timeout(Duration::from_millis(50), stream.next()).await.is_err(), "the rest has not been sent");
    server.request().await;
    closes_at_once(server, move || drop(stream)).await;
}

/// Dropping a call that waits for its response closes the connection, too.
pub async fn dropping_a_call_that_waits_closes_the_connection<A: Api>(_: Sample) {
    let mut server = Server::start(vec![vec![Step::AwaitClose]]).await;
    let mut stream = model::<A>(&server).stream(question());
    tokio::select! {
        delta = stream.next() => panic!("no answer yet: {delta:?}"),
        _ = server.request() => {}
    }
    closes_at_once(server, move || drop(stream)).await;
}

async fn closes_at_once(mut server: Server, drop: impl FnOnce()) {
    let dropped = Instant::now();
    drop();
    assert_eq!(server.next().await, Seen::Closed);
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
}

/// Connecting is the first poll.
pub async fn nothing_is_sent_before_the_first_poll<A: Api>(sample: Sample) {
    let mut server = Server::start(vec![streamed::<A>(sample.end)]).await;
    let stream = model::<A>(&server).stream(question());
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
    assert_eq!(answer(stream).await, "|stop");
    assert_eq!(server.next().await, Seen::Connected);
}

/// Requests use the client that was set.
pub async fn a_client_of_ones_own_is_used<A: Api>(sample: Sample) {
    let mut server = Server::start(vec![streamed::<A>(sample.end)]).await;
    // Building ours installs the crypto provider that every client needs.
    drop(mainstem_http::client());
    let client = Client::builder().user_agent("mine").build().unwrap();
    answer(model::<A>(&server).with_client(client).stream(question())).await;
    assert!(server.request().await.contains("\r\nuser-agent: mine\r\n"));
}

/// A connection is kept for the next call, also for one of another model.
pub async fn one_connection_serves_one_call_after_another<A: Api>(sample: Sample) {
    let mut script = streamed::<A>(&sample.answer());
    script.push(Step::Next);
    script.extend(streamed::<A>(&sample.answer()));
    let mut server = Server::start(vec![script.clone(), script]).await;
    let first = model::<A>(&server);
    for model in [first.clone(), first.with_model("n")] {
        assert_eq!(answer(model.stream(question())).await, "Hi |stop");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.next().await, Seen::Connected);
    server.next().await;
    assert!(matches!(server.next().await, Seen::Request(_)), "no second connection");
}

/// A connection that the server closes between two calls is replaced, also if the task may read no
/// socket at the beginning of the next call, because its share of tokio's budget is used up.
pub async fn a_connection_that_was_closed_meanwhile_is_replaced<A: Api>(sample: Sample) {
    let mut script = streamed::<A>(&sample.answer());
    // It closes the connection when that waits for the next call.
    script.push(Step::Pause(Duration::from_millis(10)));
    let mut server = Server::start(vec![script; 3]).await;
    let model = model::<A>(&server);
    for call in 0..3 {
        if call == 2 {
            use_up_budget().await;
        }
        let answered = timeout(Duration::from_secs(10), answer(model.stream(question()))).await;
        assert_eq!(answered.expect("the call ends"), "Hi |stop");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(server.next().await, Seen::Connected);
        assert!(matches!(server.next().await, Seen::Request(_)));
    }
}

async fn use_up_budget() {
    std::future::poll_fn(|cx| {
        while let Poll::Ready(progress) = coop::poll_proceed(cx) {
            progress.made_progress();
        }
        Poll::Ready(())
    })
    .await;
}

/// The vendor's end ends a response, not the end of the body.
pub async fn a_complete_answer_needs_no_proper_end<A: Api>(sample: Sample) {
    check::<A>(streamed::<A>(&sample.answer()), "Hi |stop").await;
    let mut cut = streamed::<A>(&sample.answer());
    cut.pop();
    check::<A>(cut, "Hi |stop").await;
}

/// Bytes may come one by one, and the last payload without its line break.
pub async fn events_may_be_torn_apart<A: Api>(sample: Sample) {
    let text = sample.text.replace("Hi", "Hé");
    let (media_type, frame, last) = match A::FORM {
        Form::Events => {
            ("Text/Event-Stream", format!("data: {text}\r\n\r\n"), format!("data: {}", sample.end[0]))
        }
        Form::Lines => ("Application/X-NDJSON", format!("{text}\r\n"), sample.end[0].to_owned()),
    };
    let headers = format!("content-type: {media_type}; charset=utf-8\r\nconnection: close\r\n");
    let mut script = vec![head("200 OK", &headers)];
    for byte in frame.bytes() {
        script.extend([Step::Send(vec![byte]), Step::Pause(Duration::from_micros(100))]);
    }
    // Without a length, the end of the body is that of the connection.
    script.push(Step::Send(last.into_bytes()));
    check::<A>(script, "Hé |stop").await;
}

/// Usage comes before it, wherever the vendor sends it.
pub async fn the_last_delta_is_the_reason_to_stop<A: Api>(sample: Sample) {
    let payloads = [&[sample.text], sample.counted_end].concat();
    let server = Server::start(vec![streamed::<A>(&payloads)]).await;
    let deltas: Vec<_> = model::<A>(&server).stream(question()).map(Result::unwrap).collect().await;
    assert_eq!(deltas[1], ModelDelta::Usage(Usage::new(3, 1)));
    assert_eq!(deltas[2..], [ModelDelta::Stop(StopReason::Stop)]);
}

/// A response that does not stream is reported as such; an invalid one, or one that is cut, is an
/// error.
pub async fn an_answer_of_one_piece_is_reported_as_such<A: Api>(sample: Sample) {
    let json = |body: &str| whole("200 OK", "content-type: application/json; charset=utf-8\r\n", body);
    let said = "(HOST answered in one piece although asked to stream)";
    let (body, shown) = sample.whole;
    check::<A>(json(body), &format!("{said} {shown}")).await;
    let (noun, missing) = (A::RESPONSE_NOUN, sample.missing);
    check::<A>(json("{}"), &format!("!protocol: HOST sent what is no {noun}: {missing}: {{}}")).await;
    let broke_off = "!server_error: HOST broke off its answer: Gone";
    check::<A>(json(&sample.error("Gone")), broke_off).await;
    let mut cut = json(body);
    cut[1] = Step::Send(body.as_bytes()[..body.len() / 2].to_vec());
    let what = "was cut off before its answer was complete: end of file before message length reached";
    check::<A>(cut, &format!("!transport: HOST {what}")).await;
}

/// A message without a form in the API is an error of the request, before a connection is opened.
pub async fn a_conversation_the_api_has_no_form_for_is_not_sent<A: Api>(sample: Sample) {
    let mut server = Server::start(vec![streamed::<A>(sample.end)]).await;
    let messages = vec![Arc::new((sample.without_form)())];
    let mut stream = model::<A>(&server).stream(ModelRequest { messages, ..ModelRequest::default() });
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().starts_with(&format!("{} ", server.host())), "{error}");
    assert!(stream.next().await.is_none(), "an error is the last item");
    assert!(timeout(Duration::from_millis(30), server.next()).await.is_err());
}
