//! Without faults: any server answers for any session.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, future::join_all, stream::BoxStream};
use mainstem::{
    api::{
        AnySession, Code, EventQuery, Host, JobState, LiveFrame, NewJob, NewLink, NewRun, RunState, RunView,
        SessionQuery,
    },
    client::Server,
    event::{AgentEvent, EventKind, FleetState},
    message::{RunId, SessionId},
};
use mainstem_postgres::Settings;
use mainstem_testing::laws;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    client::{answer_all, one_run, read_through, until_asked},
    cluster::{Cluster, LEASE},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_server_answers_for_any_session() {
    let cluster = Cluster::start(3).await;
    let session: SessionId = "s".parse().unwrap();
    // Begun at one server, answered and continued at others.
    for server in 0..3 {
        let seen = one_run(&cluster.address_of(server), &session, &format!("run-{server}"), None).await;
        let last = seen.last().unwrap();
        assert!(last.is_run_end() && last.to_string().contains("success"), "{server}: {last}");
    }
    let remote =
        |server: usize| Server::at(&cluster.address_of(server)).unwrap().open(session.clone()).unwrap();
    let fleets = join_all((0..3).map(|server| async move { remote(server).fleet().await.unwrap() })).await;
    assert!(fleets.iter().all(|fleet| *fleet == fleets[0]));
    let last = fleets[0].seq;
    // The events are read from the journal, not asked for.
    let asked = || cluster.database.sql("SELECT last_value FROM mainstem.relayed_ids");
    let before = asked();
    let read = join_all((0..3).map(|server| {
        let address = cluster.address_of(server);
        async move { read_through(&address, &"s".parse().unwrap(), last).await }
    }));
    let read = read.await;
    laws(&read[0]).unwrap();
    assert!(read.iter().all(|events| *events == read[0]));
    let earlier =
        join_all((0..3).map(|server| async move { remote(server).fleet_at(last / 2).await.unwrap() })).await;
    assert!(earlier.iter().all(|fleet| *fleet == earlier[0]) && earlier[0].seq == last / 2);
    assert_eq!(asked(), before);
    figures_are_those_of_the_dashboard(&cluster).await;
    for server in 0..3 {
        let views = Server::at(&cluster.address_of(server)).unwrap();
        let views = views.sessions(&SessionQuery::default()).await.unwrap().items;
        assert_eq!((views.len(), views[0].runs), (1, 3), "{server}");
    }
}

/// Each metric that the dashboard asks for is served, and those of the journal have counted.
async fn figures_are_those_of_the_dashboard(cluster: &Cluster) {
    let served =
        reqwest::get(format!("{}/metrics", cluster.address_of(0))).await.unwrap().text().await.unwrap();
    let dashboard: serde_json::Value =
        serde_json::from_str(include_str!("../../deploy/grafana.json")).unwrap();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let asks = target["expr"].as_str().unwrap();
            let names = asks.split(|char: char| !char.is_ascii_lowercase() && char != '_');
            for name in names.filter(|word| word.starts_with("mainstem_")) {
                let family = ["_total", "_bucket"].iter().fold(name, |name, end| name.trim_end_matches(end));
                assert!(served.contains(&format!("# TYPE {family} ")), "{name} is not served");
                asked += 1;
            }
        }
    }
    assert!(asked > 15, "{asked}");
    let figure = |name: &str| {
        let line = served.lines().find_map(|line| line.strip_prefix(&format!("mainstem_{name} ")));
        line.unwrap_or_else(|| panic!("{name}")).parse::<f64>().unwrap()
    };
    assert!(figure("journal_commits_total") > 0.0 && figure("journal_commit_seconds_total") > 0.0);
    assert!(figure("journal_events_total") >= figure("journal_commits_total"));
    assert!(figure("journal_lease_seconds") > 0.0 && figure("journal_lease_seconds") <= LEASE.as_secs_f64());
    assert_eq!((figure("journal_events_waiting"), figure("journal_failures_total")), (0.0, 0.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_at_another_server_follow_a_run_while_it_works() {
    let mut cluster = Cluster::start(2).await;
    let remote = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    let begun = remote(0).run(NewRun::new("go")).await.unwrap();
    let run = begun.run.id().clone();
    let question = |event: &AgentEvent| matches!(event.kind, EventKind::RequireUserConfirm { .. });
    // The one of the run, with a filter, to its end; the others of the session.
    let of_run = remote(1).events(EventQuery { run: Some(run.clone()), ..EventQuery::default() });
    let of_all: Vec<_> = (0..20).map(|_| remote(1).events(EventQuery::default())).collect();
    let mut live = remote(1).events(EventQuery::default());
    let asked = async {
        while let Some(event) = live.next().await {
            if question(event.as_ref().unwrap()) {
                break;
            }
        }
        answer_all(&remote(1)).await;
    };
    let (seen, ()) = tokio::join!(of_run.try_collect::<Vec<_>>(), asked);
    let seen = seen.unwrap();
    laws(&seen).unwrap();
    let end = seen.last().unwrap();
    assert!(end.is_run_end() && seen.iter().any(question), "{end}");
    for reader in of_all {
        let count = seen.len();
        assert_eq!(reader.take(count).try_collect::<Vec<_>>().await.unwrap(), seen);
    }
    // A reader that has the end of the run gets no stream, as at the owner.
    let query = EventQuery { run: Some(run), after: Some(end.seq), ..EventQuery::default() };
    assert_eq!(remote(1).events(query).count().await, 0);
    let unknown = EventQuery { run: Some("run-x".parse().unwrap()), ..EventQuery::default() };
    let error = remote(1).events(unknown).next().await.unwrap().unwrap_err();
    assert_eq!(error.problem().map(|problem| problem.code.clone()), Some(Code::NotFound), "{error}");
    // As many readers as a session may have: a run that one more would read does not begin.
    let mut held = Vec::new();
    loop {
        let mut reader = remote(1).events(EventQuery::default());
        match reader.next().await.unwrap() {
            Ok(_) => held.push(reader),
            Err(_) => break,
        }
        assert!(held.len() < 99, "readers have a limit");
    }
    let request = reqwest::Client::new().post(format!("{}/v1/sessions/s/runs", cluster.address_of(1)));
    let request = request.header("accept", "text/event-stream").json(&NewRun::new("one more"));
    assert_eq!(request.send().await.unwrap().status(), 429);
    assert_eq!(remote(1).view().await.unwrap().runs, 1);
    drop(held);
    // The owner ends; the reader goes on at the same server, which takes the session over.
    let mut tail = remote(1).events(EventQuery { after: Some(end.seq), ..EventQuery::default() });
    cluster.servers[0].kill();
    let more = one_run(&cluster.address_of(1), &"s".parse().unwrap(), "more", None).await;
    assert!(more.last().unwrap().is_run_end());
    assert_eq!(tail.next().await.unwrap().unwrap().seq, end.seq + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_s_run_is_taken_up_by_another_within_15_seconds() {
    let mut cluster = Cluster::with_long_lease(2).await;
    let session: SessionId = "s".parse().unwrap();
    let remote = Server::at(&cluster.address_of(0)).unwrap().open(session.clone()).unwrap();
    let mut begun = remote.run(NewRun::new("go")).await.unwrap();
    // In the middle: the children speak.
    while let Some(Ok(event)) = begun.events.next().await {
        if event.depth() == 1 && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            break;
        }
    }
    cluster.servers[0].kill();
    let killed_at = Instant::now();
    let remote = Server::at(&cluster.address_of(1)).unwrap().open(session.clone()).unwrap();
    let mut taken_up = None;
    let mut events = remote.events(EventQuery::after(0));
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        if event.is_root() && matches!(event.kind, EventKind::AgentStart { .. }) && !seen.is_empty() {
            taken_up = Some(killed_at.elapsed());
        }
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            remote.confirm(confirm_id, mainstem::event::Decision::Allow).await.unwrap();
        }
        let is_end = event.is_run_end() && taken_up.is_some();
        seen.push(event);
        if is_end {
            break;
        }
    }
    let taken_up = taken_up.unwrap();
    assert!(taken_up > mainstem_postgres::LEASE / 2 && taken_up < Duration::from_secs(15), "{taken_up:?}");
    laws(&seen).unwrap();
    let ends: Vec<_> = seen.iter().filter(|event| event.is_run_end()).map(ToString::to_string).collect();
    assert!(ends.len() == 2 && ends[0].contains("restarted") && ends[1].contains("success"), "{ends:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_stop_one_after_the_other_hand_their_sessions_over() {
    let mut cluster = Cluster::start(2).await;
    let address = cluster.address();
    let sessions: Vec<SessionId> = (0..6).map(|number| format!("s-{number}").parse().unwrap()).collect();
    let runs = |when: &str| {
        let run = |session: &SessionId| {
            let (address, session, key) = (address.clone(), session.clone(), format!("{session}, {when}"));
            async move { one_run(&address, &session, &key, None).await }
        };
        join_all(sessions.iter().map(run).collect::<Vec<_>>())
    };
    assert!(runs("before").await.iter().all(|seen| seen.last().unwrap().is_run_end()));
    for server in 0..2 {
        cluster.servers[server].stop().await;
        let begun = Instant::now();
        let seen = runs(&format!("without {server}")).await;
        assert!(seen.iter().all(|seen| seen.last().unwrap().to_string().contains("success")));
        // No request waits for a lease to end.
        assert!(begun.elapsed() < LEASE, "{:?}", begun.elapsed());
        cluster.servers[server].start_again();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_server_is_killed_ends_at_another_with_its_turn() {
    let mut cluster = Cluster::start(2).await;
    let session: SessionId = "s".parse().unwrap();
    let server = |number: usize| Server::at(&cluster.address_of(number)).unwrap();
    let job = NewJob::new(NewRun::new("go")).with_session(session.clone());
    let job = server(1).add_job(job).await.unwrap();
    // One that waits until the session is free.
    let next = NewJob::new(NewRun::new("go on")).with_session(session.clone());
    let next = server(0).add_job(next).await.unwrap();
    let remote = server(1).open(session).unwrap();
    let mut events = remote.events(EventQuery::after(0));
    let mut fleet = events.next().await;
    while !matches!(&fleet, Some(Ok(event)) if event.depth() == 1) {
        fleet = match events.next().await {
            Some(Ok(event)) => Some(Ok(event)),
            // The job creates the session when it begins.
            _ => {
                sleep(Duration::from_millis(50)).await;
                events = remote.events(EventQuery::after(0));
                None
            }
        };
    }
    let nodes = mainstem_postgres::nodes(&Settings::parse(&cluster.database.url()).unwrap()).await.unwrap();
    let runner = usize::from(nodes.iter().any(|node| node.runs == 1 && node.name == "node-1"));
    let remote = server(1 - runner).open(remote.id().clone()).unwrap();
    cluster.servers[runner].kill();
    let mut views = Vec::new();
    for id in [&job.id, &next.id] {
        let begun = Instant::now();
        views.push(loop {
            let view = Server::at(&cluster.address_of(1 - runner)).unwrap().job(id).await.unwrap();
            if view.status == JobState::Ended {
                break view;
            }
            assert!(begun.elapsed() < Duration::from_secs(40), "{view:?}");
            answer_all(&remote).await;
            sleep(Duration::from_millis(100)).await;
        });
    }
    let runs = remote.runs().await.unwrap();
    let cut = runs.iter().filter(|run| run.error.as_ref().is_some_and(|error| error.code == "restarted"));
    // Two jobs: two runs, and the one that took the turn up.
    assert_eq!((cut.count(), runs.len()), (1, 3), "{runs:?}");
    for view in views {
        let last = view.last_run.unwrap();
        assert_eq!(last.status, RunState::Success, "{last:?}");
        assert!(runs.iter().any(|run| Some(&run.id) == last.run_id.as_ref()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_go_on_at_a_replica_that_takes_the_database_s_place() {
    let mut cluster = Cluster::start(2).await;
    let (address, session) = (cluster.address(), "s".parse().unwrap());
    let mut seen = 0;
    for time in 0..3 {
        let run = one_run(&address, &session, &format!("run-{time}"), None).await;
        assert!(run[0].seq > seen && run.last().unwrap().to_string().contains("success"));
        seen = run.last().unwrap().seq;
        cluster.fail_over(Duration::from_millis(50)).await;
    }
    let read = read_through(&address, &session, seen).await;
    laws(&read).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_runs_are_found_at_any_server_and_outlive_theirs() {
    for is_killed in [true, false] {
        let mut cluster = Cluster::start(2).await;
        let remote = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
        let queued = |text: &str| NewRun { queue: true, ..NewRun::new(text) };
        remote(0).run(NewRun::new("one")).await.unwrap();
        let two = remote(1).run(queued("two")).await.unwrap().run;
        let three = remote(0).run(queued("three")).await.unwrap().run;
        let four = remote(0).run(queued("four")).await.unwrap().run;
        let job = NewJob::new(NewRun::new("five")).with_session("s".parse::<SessionId>().unwrap());
        let job = Server::at(&cluster.address_of(1)).unwrap().add_job(job).await.unwrap();
        let at = |server: usize, run: &RunId| format!("{}/v1/runs/{run}", cluster.address_of(server));
        for run in [&two, &three, &four] {
            for server in 0..2 {
                let view: RunView = reqwest::get(at(server, run.id())).await.unwrap().json().await.unwrap();
                assert_eq!(view.status, RunState::Queued);
            }
        }
        let (two, three, four) = (two.id().clone(), three.id().clone(), four.id().clone());
        let cancel = reqwest::Client::new().post(format!("{}/cancel", at(1, &three)));
        assert_eq!(cancel.json(&json!({})).send().await.unwrap().status(), 202);
        let is_cancelled = async || {
            let view: RunView = reqwest::get(at(1, &three)).await.unwrap().json().await.unwrap();
            view.status == RunState::Cancelled
        };
        while !is_cancelled().await {
            sleep(Duration::from_millis(10)).await;
        }
        let other = remote(1);
        match is_killed {
            true => cluster.servers[0].kill(),
            false => cluster.servers[0].stop().await,
        }
        let begun = Instant::now();
        let host = Server::at(&cluster.address_of(1)).unwrap();
        let job = loop {
            let job = host.job(&job.id).await.unwrap();
            if job.status == JobState::Ended {
                break job;
            }
            assert!(begun.elapsed() < Duration::from_secs(40), "{job:?}, {:?}", other.runs().await);
            answer_all(&other).await;
            sleep(Duration::from_millis(100)).await;
        };
        let runs = other.runs().await.unwrap();
        let five = job.last_run.unwrap();
        assert_eq!(five.status, RunState::Success, "{runs:?}");
        let place = |id: &RunId| runs.iter().position(|run| run.id == *id);
        assert!(place(&two) < place(&four) && place(&four) < place(&five.run_id.unwrap()), "{runs:?}");
        let ended = |id: &RunId| runs.iter().find(|run| run.id == *id).unwrap().status;
        assert_eq!(
            [ended(&two), ended(&three), ended(&four)],
            [RunState::Success, RunState::Cancelled, RunState::Success]
        );
        // The turn that was cut off is taken up by a run of its own; one that a stop has ended is
        // not.
        assert_eq!(runs.len(), if is_killed { 6 } else { 5 }, "{runs:?}");
        let last = other.fleet().await.unwrap().seq;
        let events = read_through(&cluster.address_of(1), other.id(), last).await;
        laws(&events).unwrap();
        let left = cluster.database.sql("SELECT run FROM mainstem.queued_runs");
        assert_eq!(left, "", "killed: {is_killed}, {two}, {three}, {four}");
    }
}

/// A reader of a live stream with one session.
struct LiveReader {
    body: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: String,
    /// The nodes that had the session, in turn.
    nodes: Vec<String>,
    fleet: Option<FleetState>,
    has_left: bool,
}

impl LiveReader {
    async fn of(address: &str) -> Self {
        let request = reqwest::Client::new().get(format!("{address}/v1/live?all=true"));
        let response = request.header("accept", "application/x-ndjson").send().await.unwrap();
        assert_eq!(response.status(), 200);
        let body = response.bytes_stream().map_ok(|bytes| bytes.to_vec()).boxed();
        Self { body, text: String::new(), nodes: Vec::new(), fleet: None, has_left: false }
    }

    /// Reads until something is true of it.
    async fn until(&mut self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let read = async {
            while !is_true(self) {
                match self.text.split_once('\n') {
                    Some((line, rest)) => {
                        let (line, rest) = (line.to_owned(), rest.to_owned());
                        self.text = rest;
                        self.apply(&line);
                    }
                    None => {
                        let bytes = self.body.next().await.expect("the stream goes on").unwrap();
                        self.text += std::str::from_utf8(&bytes).unwrap();
                    }
                }
            }
        };
        if tokio::time::timeout(Duration::from_secs(30), read).await.is_err() {
            let fleet =
                self.fleet.as_ref().map(|fleet| (fleet.seq, fleet.agents.len(), fleet.confirmations.len()));
            panic!("{what}: {:?}, has left: {}, {fleet:?}", self.nodes, self.has_left);
        }
    }

    fn apply(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        match serde_json::from_str(line).unwrap() {
            LiveFrame::Session { fleet, node, .. } => {
                self.nodes.push(node.unwrap());
                self.fleet = Some(*fleet);
                self.has_left = false;
            }
            LiveFrame::Event { event, .. } => self.fleet.as_mut().unwrap().apply(&event),
            LiveFrame::Left { .. } => self.has_left = true,
            _ => {}
        }
    }

    fn asks(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| !fleet.confirmations.is_empty())
    }

    /// Compares the state with that of a session without what agents write.
    async fn check(&self, session: &impl AnySession) {
        let (seen, mut whole) = (self.fleet.as_ref().unwrap(), session.fleet().await.unwrap());
        whole.agents.iter_mut().for_each(|agent| agent.last_line.clear());
        assert_eq!((&seen.agents, seen.confirmations.len()), (&whole.agents, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_works_at_one_server_is_on_the_live_stream_of_another() {
    let cluster = Cluster::start(2).await;
    let remote = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    let begun = remote(0).run(NewRun::new("go")).await.unwrap();
    let mut live = LiveReader::of(&cluster.address_of(1)).await;
    live.until("it asks", LiveReader::asks).await;
    answer_all(&remote(1)).await;
    live.until("it leaves", |live| live.has_left).await;
    live.check(&remote(0)).await;
    assert_eq!(live.nodes, ["node-0"]);
    assert!(begun.run.view().await.unwrap().status.is_over());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_stream_goes_on_when_the_session_s_server_is_killed() {
    let mut cluster = Cluster::start(2).await;
    let remote = Server::at(&cluster.address_of(0)).unwrap().open("s").unwrap();
    remote.run(NewRun::new("go")).await.unwrap();
    let mut live = LiveReader::of(&cluster.address_of(1)).await;
    live.until("it asks", LiveReader::asks).await;
    let link = remote.add_link(NewLink::default()).await.unwrap();
    let shared = Server::at(&cluster.address_of(1)).unwrap().with_token(&link.token).open("s").unwrap();
    cluster.servers[0].kill();
    // Readers with a link neither take the session over nor prevent it.
    let reading = async {
        loop {
            assert!(shared.fleet().await.unwrap().seq > 0);
            sleep(Duration::from_millis(100)).await;
        }
    };
    // The other takes the session over: what was asked is withdrawn, and the turn goes on.
    tokio::select! {
        () = reading => {}
        () = live.until("it moves and leaves", |live| live.has_left) => {}
    }
    let end = shared.events(EventQuery::stored()).try_collect::<Vec<_>>().await.unwrap().pop().unwrap();
    assert!(end.is_run_end() && end.to_string().contains("success"), "{end}");
    live.check(&Server::at(&cluster.address_of(1)).unwrap().open("s").unwrap()).await;
    // The stream has all events of the turn. If the rest of it is short, the session has left the
    // second node before the stream names that node.
    live.nodes.dedup();
    assert!(live.nodes == ["node-0"] || live.nodes == ["node-0", "node-1"], "{:?}", live.nodes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_s_reader_at_another_server_goes_on_when_the_session_s_server_is_killed() {
    const TOKEN: &str = "the-token-of-acme";
    let mut cluster = Cluster::with_tokens(2, "acme the-token-of-acme\nthe-token-of-another").await;
    let remote = |cluster: &Cluster, server: usize| {
        Server::at(&cluster.address_of(server)).unwrap().with_token(TOKEN).open("s").unwrap()
    };
    let begun = remote(&cluster, 0).run(NewRun::new("go")).await.unwrap();
    // It is found there at once, recorded or not.
    let run = begun.run.id().clone();
    let mut of_run = remote(&cluster, 1).events(EventQuery::default().with_run(&run));
    assert!(of_run.next().await.unwrap().unwrap().is_run_start());
    let other = remote(&cluster, 1);
    let mut events = other.events(EventQuery::default());
    let mut seen = Vec::new();
    let (mut killed_at, mut ends) = (None, 0);
    while ends < 2 {
        let event = events.next().await.expect("the stream goes on").unwrap();
        if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
            match killed_at {
                None => {
                    killed_at = Some(Instant::now());
                    cluster.servers[0].kill();
                }
                Some(_) => other.confirm(confirm_id, mainstem::event::Decision::Allow).await.unwrap(),
            }
        }
        ends += usize::from(event.is_run_end());
        seen.push(event);
    }
    laws(&seen).unwrap();
    let end = seen.last().unwrap().to_string();
    assert!(end.contains("success") && killed_at.unwrap().elapsed() < Duration::from_secs(15), "{end}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_of_one_server_is_read_at_another_and_revoked_at_a_third() {
    let cluster = Cluster::start(3).await;
    let session: SessionId = "s".parse().unwrap();
    let remote =
        |server: usize| Server::at(&cluster.address_of(server)).unwrap().open(session.clone()).unwrap();
    let run = remote(0).run(NewRun::new("go")).await.unwrap();
    let begun = read_through(&cluster.address_of(0), &session, 1).await;
    assert!(begun[0].is_run_start(), "{}", begun[0]);
    // The first server has the session open, and a question of its run waits for an answer.
    let (live, frozen) = (NewLink::default(), NewLink { through: Some(2), ..NewLink::default() });
    let (live, frozen) = (remote(1).add_link(live).await.unwrap(), remote(1).add_link(frozen).await.unwrap());
    let reader = |server: usize, token: &str| {
        Server::at(&cluster.address_of(server)).unwrap().with_token(token).open(session.clone()).unwrap()
    };
    let asked = || cluster.database.sql("SELECT last_value FROM mainstem.relayed_ids");
    let before = asked();
    for server in 0..3 {
        let shared = reader(server, &frozen.token);
        let events: Vec<_> = shared.events(EventQuery::default()).try_collect().await.unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2], "{server}");
        assert_eq!(shared.fleet().await.unwrap().seq, 2);
        assert!(shared.transcript("root").await.is_ok());
        assert!(shared.view().await.unwrap_err().has_code(&Code::ReadOnly));
        let new = shared.run(NewRun::new("mine")).await.err().unwrap();
        assert!(new.has_code(&Code::ReadOnly), "{new}");
    }
    assert_eq!(asked(), before, "no node asks another");

    let shared = reader(2, &live.token);
    let mut events = shared.events(EventQuery::default());
    until_asked(&remote(1)).await;
    answer_all(&remote(1)).await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(AgentEvent::is_run_end) {
        seen.push(events.try_next().await.unwrap().expect("it is live"));
    }
    laws(&seen).unwrap();
    assert_eq!(seen, read_through(&cluster.address_of(0), &session, seen.len() as u64).await);
    assert!(run.run.view().await.unwrap().status.is_over());
    assert_eq!(remote(0).links().await.unwrap().len(), 2);
    remote(1).delete_link(&live.link.id).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(15), events.try_next()).await.expect("it ends");
    assert!(ended.unwrap_err().has_code(&Code::LinkOver));
    assert!(reader(0, &live.token).fleet().await.unwrap_err().has_code(&Code::LinkOver));
}
