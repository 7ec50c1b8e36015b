//! Traces that a collector gets over OTLP: who called whom, and nothing of what was said.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message;

use crate::{
    remote,
    support::{Cli, demo},
};

/// What was posted, and under which path.
type Posted = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes everything.
fn collector() -> (String, Posted) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let posted = Posted::default();
    let kept = posted.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(said) = line.strip_prefix("content-length: ") {
                    length = said.parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            kept.lock().unwrap().push((first, body));
            write!(reader.get_mut(), "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .unwrap();
        }
    });
    (url, posted)
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    found.value.as_ref()?.value.as_ref()
}

/// Returns the spans of a service by their ids.
fn spans(posted: &[(String, Vec<u8>)], service: &str) -> BTreeMap<Vec<u8>, Span> {
    let mut spans = BTreeMap::new();
    for (_, body) in posted {
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains("Don't merge") && !text.contains("discount"), "{text}");
        for resource in ExportTraceServiceRequest::decode(&body[..]).unwrap().resource_spans {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            let name =
                attributes.iter().find(|one| one.key == "service.name").unwrap().value.clone().unwrap();
            if name.value == Some(Value::StringValue(service.to_owned())) {
                let of_scope = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.extend(of_scope.map(|span| (span.span_id.clone(), span)));
            }
        }
    }
    spans
}

/// A remote agent's spans are below the child's here, over a request of the other server.
#[test]
fn a_trace_goes_on_at_a_remote() {
    let (url, posted) = collector();
    let far = |cli: Cli| cli.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url).env("OTEL_SERVICE_NAME", "far");
    let (model, (serving, address)) = (remote::model(), remote::serve_with("--demo-pace 0", far));
    let near = remote::run(&model, &address, "--trust --remote-host 127.0.0.1");
    let near = near.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url).env("OTEL_SERVICE_NAME", "near").run();
    assert_eq!(near.code, Some(0), "{near:?}");
    serving.signal("INT");
    serving.done();
    let posted = posted.lock().unwrap();
    let (near, far) = (spans(&posted, "near"), spans(&posted, "far"));
    let child = near.values().find(|span| span.name == "invoke_agent far").unwrap();
    let main = far.values().find(|span| span.name == "invoke_agent main").unwrap();
    // Other requests of the turn are below the child, too.
    let request = &far[&main.parent_span_id];
    assert_eq!((&*request.name, &request.parent_span_id), ("request", &child.span_id));
    assert!(far.values().filter(|span| span.trace_id == child.trace_id).count() > 10);
}

#[test]
fn a_collector_gets_the_tree_of_a_run() {
    let (url, posted) = collector();
    let done = demo("--progress quiet").env("OTEL_EXPORTER_OTLP_ENDPOINT", &url).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    let posted = posted.lock().unwrap();
    assert!(
        !posted.is_empty() && posted.iter().all(|(line, _)| line.starts_with("POST /v1/traces ")),
        "{posted:?}"
    );
    let spans = spans(&posted, "mainstem");
    let parent = |span: &Span| spans.get(&span.parent_span_id).map_or("", |parent| parent.name.as_str());
    let roots: Vec<_> = spans.values().filter(|span| span.parent_span_id.is_empty()).collect();
    let main = roots.iter().find(|span| span.name == "invoke_agent main").unwrap();
    // The reviewers that are waited for lie below the calls that spawned them, in the trace of the
    // root.
    let below: Vec<_> = spans.values().filter(|span| parent(span) == "execute_tool agent_spawn").collect();
    let names: Vec<_> = below.iter().map(|span| span.name.as_str()).collect();
    assert!(names.iter().filter(|name| **name == "invoke_agent reviewer").count() >= 2, "{names:?}");
    assert!(below.iter().all(|span| span.trace_id == main.trace_id));
    // The one in the background has a trace of its own, which says from where.
    let background: Vec<_> = roots.iter().filter(|span| span.name == "invoke_agent reviewer").collect();
    assert_eq!(background.len(), 1, "{:?}", roots.iter().map(|span| &span.name).collect::<Vec<_>>());
    let link = &background[0].links[0];
    assert_eq!(spans[&link.span_id].name, "execute_tool agent_spawn");
    assert!(link.trace_id == main.trace_id && background[0].trace_id != main.trace_id);
    let chat = spans.values().find(|span| span.name == "chat demo").unwrap();
    assert!(parent(chat).starts_with("invoke_agent "), "{chat:?}");
    assert_eq!(attribute(chat, "gen_ai.operation.name"), Some(&Value::StringValue("chat".to_owned())));
    assert!(matches!(attribute(main, "gen_ai.usage.output_tokens"), Some(Value::IntValue(1..))), "{main:?}");
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named_and_one_that_is_away_fails_nothing() {
    let (url, posted) = collector();
    assert_eq!(demo("--progress quiet").env("OTEL_SERVICE_NAME", &url).run().code, Some(0));
    assert!(posted.lock().unwrap().is_empty());
    let away = demo("--progress quiet").env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").run();
    assert_eq!((away.code, &*away.stderr), (Some(0), ""), "{away:?}");
}
