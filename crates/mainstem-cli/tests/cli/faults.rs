//! The record when its files fail: whatever a reader saw, live or later, one cursor never names two
//! events, and every law holds.
//!
//! A calm run counts the calls that change a file; then a fault happens at each of them, in a
//! server with readers and in `run`.

mod client;

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use mainstem::prelude::{AgentEvent, EventKind};
use mainstem_testing::{Fault, FaultyFiles, laws, render};
use serde_json::{Value, json};

use self::client::{Answer, ask};
use crate::{
    server::{Server, Step},
    support::{Cli, Done, Running, events, mainstem},
};

/// How many trials there are in all without `RUN_SLOW_TESTS`, of each of the two tests.
const SAMPLE: usize = 11;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

const TOKEN: &str = "the-token-of-the-test";

/// An agent that waits for one child, leaves another in the background, and answers.
fn fleet() -> Server {
    Server::start(|request| {
        let last = request["messages"].as_array().and_then(|messages| messages.last());
        let last = last.map(Value::to_string).unwrap_or_default();
        let spawn = |seconds: u32| {
            (
                "agent_spawn",
                json!({ "agent_id": "general-purpose", "task": "Dig", "timeout_seconds": seconds }),
            )
        };
        match () {
            () if last.contains("Review it") => {
                vec![Step::Text("I let "), Step::Call(vec![spawn(60), spawn(0)])]
            }
            () if last.contains("Dig") => vec![Step::Text("A nugget"), Step::Text(" of gold.")],
            () => vec![Step::Text("Gold"), Step::Text(" was found.")],
        }
    })
}

/// One directory with files that fail, for many trials.
struct Trials {
    layer: FaultyFiles,
    model: Server,
    _dir: tempfile::TempDir,
}

/// A fault at a call; `None` is a calm run.
type Shot = Option<(usize, Fault)>;

/// Whether a process has the layer that counts and fails.
#[derive(Clone, Copy)]
enum Layer {
    With(Shot),
    Without,
}

impl Trials {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Without a compiler these tests fail rather than pass unseen.
        let layer = FaultyFiles::new(dir.path()).unwrap_or_else(|error| panic!("{error}"));
        Self { layer, model: fleet(), _dir: dir }
    }

    fn journal(&self) -> PathBuf {
        self.layer.files().join("journal.db")
    }

    /// A process on the files; with faults only if it is the first.
    fn cli(&self, line: &str, layer: Layer) -> Cli {
        let cli = mainstem(line).within(&self.layer.files());
        let cli = cli.env("OPENAI_BASE_URL", &self.model.url()).env("OPENAI_API_KEY", "sk-of-the-test");
        let Layer::With(shot) = layer else { return cli };
        self.layer
            .variables(shot)
            .into_iter()
            .fold(cli, |cli, (name, value)| cli.env(&name, value.to_str().unwrap()))
    }

    /// Counts the calls of a calm trial, then lets faults happen: each at each call, or a sample of
    /// that.
    fn run(&self, trial: impl Fn(&Self, Shot)) {
        trial(self, None);
        let calls = self.layer.calls().unwrap().len();
        assert!(calls > 50, "{calls} calls are no run");
        let all: Vec<_> = (1..=calls).flat_map(|at| Fault::ALL.map(|fault| (at, fault))).collect();
        let is_slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
        // One more than a multiple of the number of faults takes each of them in turn.
        let faults = Fault::ALL.len();
        let step = if is_slow { 1 } else { all.len() / SAMPLE / faults * faults + 1 };
        let shots: Vec<_> = all.into_iter().step_by(step).collect();
        let happened = shots.iter().filter(|(at, fault)| self.happens(&trial, *at, *fault, calls)).count();
        // Calls come in groups, so that a run has some less now and then.
        assert!(happened * 4 >= shots.len() * 3, "{happened} faults in {} trials", shots.len());
    }

    /// Returns `true` if the fault happens at its call. Load changes how calls are grouped, so a
    /// trial with fewer calls than the calm one is repeated with an earlier call.
    fn happens(&self, trial: &impl Fn(&Self, Shot), at: usize, fault: Fault, calls: usize) -> bool {
        let mut aim = at;
        (0..3).any(|_| {
            self.layer.clear().unwrap();
            trial(self, Some((aim, fault)));
            let made = self.layer.calls().unwrap();
            aim = (at * made.len() / calls).clamp(1, at);
            made.iter().any(|call| call.is_faulty)
        })
    }
}

/// What the readers of one trial saw, and how it looks if something is wrong.
struct Seen {
    shot: Shot,
    log: String,
}

impl Seen {
    fn new(shot: Shot) -> Self {
        Self { shot, log: String::new() }
    }

    fn note(&mut self, what: &str, events: &[AgentEvent]) {
        let _ = writeln!(self.log, "-- {what}\n{}", render(events));
    }

    #[track_caller]
    fn check(&self, holds: bool, what: &str, trials: &Trials) {
        if !holds {
            let calls = trials.layer.calls().unwrap();
            let faulty: Vec<_> =
                calls.iter().enumerate().filter(|(_, call)| call.is_faulty).take(3).collect();
            panic!("{:?} at {faulty:?}: {what}\n{}", self.shot, self.log);
        }
    }

    #[track_caller]
    fn laws(&self, events: &[AgentEvent], trials: &Trials) {
        if let Err(violation) = laws(events) {
            self.check(false, &violation.to_string(), trials);
        }
    }

    /// What was seen is there, under the same numbers.
    #[track_caller]
    fn is_still(&self, who: &str, saw: &[AgentEvent], all: &[AgentEvent], trials: &Trials) {
        for event in saw {
            // A server leaves declarations out for its readers.
            let now = usize::try_from(event.seq - 1).ok().and_then(|index| all.get(index));
            let now = now.map(AgentEvent::without_spec);
            if now.as_ref() != Some(&event.without_spec()) {
                let now = now.map_or_else(|| "nothing".to_owned(), |now| now.to_string());
                self.check(false, &format!("{who} saw {event}, and now there is {now}"), trials);
            }
        }
    }

    fn fault(&self) -> Option<Fault> {
        self.shot.map(|(_, fault)| fault)
    }
}

/// The events before the last that promises durability, and that one: what a loss of power leaves
/// of what was shown.
fn promised(events: &[AgentEvent]) -> &[AgentEvent] {
    let last = events.iter().rposition(|event| event.kind.is_durable());
    &events[..last.map_or(0, |last| last + 1)]
}

/// Ends a process whatever it does, and says whether that was needed.
fn end(mut running: Running, signal: &str) -> (Done, bool) {
    running.signal(signal);
    let begun = Instant::now();
    while running.child.try_wait().unwrap().is_none() && begun.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(2));
    }
    let hangs = running.child.try_wait().unwrap().is_none();
    if hangs {
        running.signal("KILL");
    }
    (running.done(), hangs)
}

/// Starts a server; its address is empty if it did not come so far.
fn serve(trials: &Trials, layer: Layer) -> (Running, String) {
    let line = "serve -m openai:m -w . --bind 127.0.0.1:0 --log off --token-file tokens --journal";
    fs::write(trials.layer.files().join("tokens"), TOKEN).unwrap();
    let mut running = trials.cli(line, layer).arg(trials.journal()).start();
    let url = running.line();
    let address = url.trim().strip_prefix("http://").unwrap_or_default().to_owned();
    (running, address)
}

/// A reader that comes back again and again, for what is new since, until it is told to stop.
fn follow(address: &str) -> (mpsc::Sender<()>, thread::JoinHandle<Vec<AgentEvent>>) {
    let (stop, stopped) = mpsc::channel::<()>();
    let address = address.to_owned();
    let reader = thread::spawn(move || {
        let mut all: Vec<AgentEvent> = Vec::new();
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            let after = all.last().map_or(0, |event| event.seq);
            let request = format!("GET /v1/sessions/s/events?follow=false&after={after}");
            all.extend(ask(&address, &request, "").events);
            thread::sleep(Duration::from_millis(3));
        }
        all
    });
    (stop, reader)
}

fn post(address: &str) -> Answer {
    ask(address, "POST /v1/sessions/s/runs", r#"{"input": "Review it"}"#)
}

/// Two runs, and what their readers and two others see, as long as the server lives.
fn read(address: &str) -> Vec<(&'static str, Answer)> {
    if address.is_empty() {
        return Vec::new();
    }
    let (stop, reader) = follow(address);
    let first = post(address);
    drop(stop);
    let back = Answer::of(reader.join().unwrap());
    let late = ask(address, "GET /v1/sessions/s/events?follow=false", "");
    let second = post(address);
    vec![
        ("the first run", first),
        ("a reader that comes back", back),
        ("a late reader", late),
        ("the second run", second),
    ]
}

fn a_server(trials: &Trials, shot: Shot) {
    let mut seen = Seen::new(shot);
    let (running, address) = serve(trials, Layer::With(shot));
    let answers = read(&address);
    let is_dead = seen.fault().is_some_and(Fault::is_fatal);
    let (done, hangs) = end(running, if is_dead { "KILL" } else { "INT" });
    for (what, answer) in &answers {
        seen.note(&format!("{what}: {} {}", answer.head, answer.rest), &answer.events);
    }
    let _ = writeln!(seen.log, "-- {done:?}");
    seen.check(!hangs, "the server does not stop", trials);
    seen.check(!done.stderr.contains("panicked"), "a panic", trials);
    let tells = !address.is_empty() || is_dead || done.stderr.starts_with("error: ");
    seen.check(tells, "a server that can't start says so", trials);
    let is_lost = seen.fault() == Some(Fault::PowerLoss);
    if is_lost {
        trials.layer.lose_power().unwrap();
    }

    let (running, address) = serve(trials, Layer::Without);
    seen.check(!address.is_empty(), "it starts again", trials);
    let after = post(&address);
    let (done, hangs) = end(running, "INT");
    seen.check(!hangs && done.code == Some(0), &format!("{done:?}"), trials);
    let all = recorded(trials);
    seen.note("after the restart", &all);
    seen.laws(&all, trials);
    seen.check(after.events.iter().any(AgentEvent::is_run_end), "it goes on", trials);
    for (what, answer) in &answers {
        let kept = if is_lost { promised(&answer.events) } else { &answer.events };
        seen.is_still(what, kept, &all, trials);
    }
}

/// The session as it is on the disk.
fn recorded(trials: &Trials) -> Vec<AgentEvent> {
    events(&mainstem("sessions export s --journal").arg(trials.journal()).run().stdout)
}

#[test]
fn what_readers_of_a_server_saw_stays_true_whatever_the_files_do() {
    Trials::new().run(a_server);
}

/// A run of the session `s`.
fn a_run(trials: &Trials, shot: Shot) {
    let mut seen = Seen::new(shot);
    let run = |layer| {
        let line =
            "run -m openai:m -w . --background wait --progress quiet --output ndjson --session s --journal";
        trials.cli(line, layer).arg(trials.journal()).arg("Review it").run()
    };
    let first = run(Layer::With(shot));
    // A process that is killed leaves half a line.
    let whole = first.stdout.rfind('\n').map_or("", |end| &first.stdout[..=end]);
    let shown = events(whole);
    seen.note(&format!("shown; {:?}, {}", first.code, first.stderr), &shown);
    seen.check(!first.stderr.contains("panicked"), "a panic", trials);
    let is_dead = first.code.is_none();
    if !is_dead && !shown.is_empty() {
        seen.laws(&shown, trials);
    }
    if seen.fault() == Some(Fault::PowerLoss) {
        trials.layer.lose_power().unwrap();
    }
    let second = run(Layer::Without);
    let all = recorded(trials);
    seen.note(&format!("after another run; {:?}, {}", second.code, second.stderr), &all);
    seen.check(second.code == Some(0), "it goes on", trials);
    seen.laws(&all, trials);
    // The run reports that its record failed.
    let kept = match first.code {
        Some(0) => &shown[..],
        None => promised(&shown),
        Some(_) => &[],
    };
    seen.is_still("who looked", kept, &all, trials);
    let failed = |event: &AgentEvent| matches!(&event.kind, EventKind::AgentEnd { error: Some(_), .. });
    let ended = shown.iter().rev().find(|event| event.is_run_end());
    let tells = ended.is_none_or(failed) || first.stderr.starts_with("warning: ");
    seen.check(matches!(first.code, Some(0) | None) || tells, "a run that failed says so", trials);
}

#[test]
fn what_a_run_promised_stays_true_whatever_the_files_do() {
    Trials::new().run(a_run);
}
