//! A server that speaks OpenAI's chat completions, and does with each request what a script says.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// What is done with a request.
#[derive(Clone)]
pub(crate) enum Step {
    /// Answers with a status, further headers and a body.
    Refuse(&'static str, &'static str, String),
    /// Sends a piece of text.
    Text(&'static str),
    /// Calls tools: name and arguments.
    Call(Vec<(&'static str, Value)>),
    /// Sends something that is no JSON.
    Garbage,
    /// Ends the answer for this reason.
    End(&'static str),
    /// Waits until the gate is opened.
    Gate,
    /// Waits until the client is gone, and notes when.
    Hang,
}

type Script = dyn Fn(&Value) -> Vec<Step> + Send + Sync;

pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Value>>,
    gate: Mutex<bool>,
    opened: Condvar,
    hanging: AtomicUsize,
    closed: Mutex<Vec<Instant>>,
}

impl Server {
    pub(crate) fn start(script: impl Fn(&Value) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, script): (_, Arc<Script>) = (Arc::new(State::default()), Arc::new(script));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, script, state) = (stream.unwrap(), script.clone(), shared.clone());
                thread::spawn(move || state.serve(stream, &*script));
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn open_gate(&self) {
        *self.state.gate.lock().unwrap() = true;
        self.state.opened.notify_all();
    }

    /// Waits until so many requests hang.
    pub(crate) fn until_hanging(&self, count: usize) {
        until(|| self.state.hanging.load(Ordering::SeqCst) == count);
    }

    /// When each of so many clients that were left hanging was gone.
    pub(crate) fn closed(&self, count: usize) -> Vec<Instant> {
        until(|| self.state.closed.lock().unwrap().len() == count);
        self.state.closed.lock().unwrap().clone()
    }
}

fn until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "it does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream, script: &Script) {
        stream.set_nodelay(true).unwrap();
        while let Some(request) = read_request(&mut stream) {
            self.requests.lock().unwrap().push(request.clone());
            // A client that goes away in the middle of an answer is no failure of the server.
            if self.play(&mut stream, script(&request)).is_err() {
                return;
            }
        }
    }

    fn play(&self, stream: &mut TcpStream, steps: Vec<Step>) -> std::io::Result<()> {
        if let Some(Step::Refuse(status, headers, body)) = steps.first() {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            return stream.write_all((head + body).as_bytes());
        }
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        let is_call = steps.iter().any(|step| matches!(step, Step::Call(_)));
        let mut end = if is_call { "tool_calls" } else { "stop" };
        for step in steps {
            match step {
                Step::Text(text) => event(stream, &chunk(&json!({ "content": text }), None))?,
                Step::Call(calls) => {
                    event(stream, &chunk(&json!({ "tool_calls": tool_calls(&calls) }), None))?
                }
                Step::Garbage => event(stream, "{garbage")?,
                Step::End(reason) => end = reason,
                Step::Gate => {
                    let opened = self.opened.wait_while(self.gate.lock().unwrap(), |open| !*open).unwrap();
                    drop(opened);
                }
                Step::Hang => {
                    self.hanging.fetch_add(1, Ordering::SeqCst);
                    while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
                    self.closed.lock().unwrap().push(Instant::now());
                    return Err(std::io::ErrorKind::ConnectionAborted.into());
                }
                Step::Refuse(..) => unreachable!("it stands alone"),
            }
        }
        event(stream, &chunk(&json!({}), Some(end)))?;
        event(
            stream,
            r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#,
        )?;
        event(stream, "[DONE]")?;
        stream.write_all(b"0\r\n\r\n")
    }
}

fn tool_calls(calls: &[(&str, Value)]) -> Vec<Value> {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
    };
    calls.iter().enumerate().map(call).collect()
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] }).to_string()
}

fn event(stream: &mut TcpStream, payload: &str) -> std::io::Result<()> {
    let frame = format!("data: {payload}\n\n");
    stream.write_all(format!("{:x}\r\n{frame}\r\n", frame.len()).as_bytes())
}

/// The body of the next request; nothing if the client is gone.
fn read_request(stream: &mut TcpStream) -> Option<Value> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Some(serde_json::from_str(body).unwrap());
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
}
