//! Jobs: runs at a time, or again and again.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use mainstem::{
    event::{Clock, SystemClock},
    journal::{Job, JobStatus, Journal},
    message::JobId,
    model::scripted::Turn,
    prelude::ScriptedModel,
};
use mainstem_server::{Builder, Server, Tokens};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::{
    rig::{Rig, TOKEN, fleet, ms, says},
    servers::journal,
};

async fn rig(model: ScriptedModel, journal: &Arc<dyn Journal>, jobs: usize) -> Rig {
    let harness = fleet(model).with_journal(journal.clone());
    Rig::start(harness, |builder| builder.with_max_jobs(jobs)).await
}

pub(crate) async fn add(rig: &Rig, job: Value) -> Value {
    let response = rig.post("/v1/jobs", job).await;
    let (status, place) = (response.status(), response.headers().get("location").cloned());
    let job: Value = response.json().await.unwrap();
    assert_eq!(status, 201, "{job}");
    assert_eq!(place.unwrap(), format!("/v1/jobs/{}", job["id"].as_str().unwrap()));
    job
}

/// Waits until a job has a status, and returns it.
pub(crate) async fn until(rig: &Rig, job: &Value, status: &str) -> Value {
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    for _ in 0..500 {
        let job = rig.get_json(&path).await;
        if job["status"] == status {
            return job;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("not {status}: {}", rig.get_json(&path).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_begins_a_run_and_tells_how_it_ended() {
    let rig = rig(says(3), &journal().await, 2).await;
    let job = add(&rig, json!({ "id": "report", "session_id": "s", "run": { "input": "go" } })).await;
    let job = until(&rig, &job, "ended").await;
    assert_eq!((&job["runs"], &job["last_run"]["status"]), (&json!(1), &json!("success")), "{job}");
    let runs = rig.get_json("/v1/sessions/s/runs").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&runs["items"][0]["id"], &runs["items"][0]["reply"]),
        (&job["last_run"]["run_id"], &json!("0"))
    );
    // Each run of a job without a session has one of its own.
    let own = until(&rig, &add(&rig, json!({ "run": { "input": "go" } })).await, "ended").await;
    let session = format!("{}-1", own["id"].as_str().unwrap());
    assert_eq!(own["last_run"]["session_id"], session);
    assert_eq!(rig.get_json(&format!("/v1/sessions/{session}")).await["runs"], 1);
    // A run that could not begin is told, too.
    let none = json!({ "session_id": "new", "run": { "resume": true } });
    let none = until(&rig, &add(&rig, none).await, "ended").await;
    assert_eq!(none["last_run"]["error"]["code"], "not_found", "{none}");
    assert_eq!(rig.get_json("/v1/jobs").await["items"], json!([]));
    assert_eq!(rig.get_json("/v1/jobs?all=true").await["items"].as_array().unwrap().len(), 3);
    assert_eq!(rig.live_runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_time_and_can_be_cancelled() {
    let rig = rig(says(1), &journal().await, 2).await;
    let later = add(&rig, json!({ "run": { "input": "go" }, "run_at": "2100-01-01T00:00:00Z" })).await;
    let hourly = add(&rig, json!({ "run": { "input": "go" }, "cron": "0 * * * * Europe/Berlin" })).await;
    assert_eq!((&later["status"], &hourly["status"]), (&json!("waiting"), &json!("waiting")));
    let listed = rig.get_json("/v1/jobs").await;
    assert_eq!((&listed["items"][0]["id"], &listed["items"][1]["id"]), (&hourly["id"], &later["id"]));
    let ids = [&hourly, &later].map(|job| [job["id"].as_str().unwrap().to_owned()]);
    assert_eq!(rig.pages_of("/v1/jobs?limit=1").await, ids);
    for query in ["limit=0", "limit=1001", "cursor=-1.x", "page=2"] {
        assert_eq!(rig.get(&format!("/v1/jobs?{query}")).await.status(), 400, "{query}");
    }
    let path = |job: &Value| format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap());
    for job in [&later, &hourly] {
        let response = rig.post(&path(job), json!({})).await;
        assert_eq!(response.status(), 202);
        assert_eq!(response.json::<Value>().await.unwrap()["status"], "cancelled");
    }
    let again: Value = rig.post(&path(&later), json!({})).await.json().await.unwrap();
    assert_eq!((&again["code"], &again["status"]), (&json!("job_over"), &json!(409)));
    assert_eq!(rig.get_json("/v1/sessions").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_cancelled_ends_its_run() {
    let slow = ScriptedModel::new().agent("main", [Turn::new().text("Well.").wait(ms(60_000)).text("Slow.")]);
    let rig = rig(slow, &journal().await, 2).await;
    let job = add(&rig, json!({ "session_id": "s", "run": { "input": "go" } })).await;
    until(&rig, &job, "active").await;
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    for _ in 0..500 {
        if rig.get_json(&path).await["run_id"].is_string() {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    let runs = rig.get_json("/v1/sessions/s/runs").await;
    assert_eq!(rig.get_json(&path).await["run_id"], runs["items"][0]["id"]);
    let cancelled = rig.post(&format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap()), json!({})).await;
    assert_eq!(cancelled.json::<Value>().await.unwrap()["status"], "cancelling");
    let job = until(&rig, &job, "cancelled").await;
    assert_eq!(job["last_run"]["status"], "cancelled", "{job}");
    assert_eq!(rig.live_runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_begin_by_priority_and_one_after_the_other() {
    let journal = journal().await;
    // Added before any server runs jobs.
    let idle = rig(says(0), &journal, 0).await;
    for (id, priority) in [("low", -1), ("high", 7), ("middle", 0)] {
        add(&idle, json!({ "id": id, "session_id": "s", "run": { "input": id }, "priority": priority }))
            .await;
    }
    tokio::time::sleep(ms(50)).await;
    assert_eq!(idle.get_json("/v1/jobs").await["items"].as_array().unwrap().len(), 3);
    idle.stop_now().await;
    let rig = rig(says(3), &journal, 8).await;
    until(&rig, &json!({ "id": "low" }), "ended").await;
    let transcript = rig.get_json("/v1/sessions/s/agents/root/transcript").await;
    let said = transcript["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let said: Vec<_> =
        said.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, ["high", "middle", "low"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_repeats_is_due_again_after_its_run() {
    let (journal, now) = (journal().await, SystemClock.now());
    let mut job = Job::new("hourly".parse().unwrap(), json!({ "input": "go" }), now);
    job = job.with_cron("0 * * * *", now).unwrap();
    job.due_at = now;
    assert!(journal.jobs().unwrap().add(job).await.unwrap());
    let rig = rig(says(1), &journal, 1).await;
    for _ in 0..500 {
        let job = rig.get_json("/v1/jobs/hourly").await;
        if job["runs"] == 1 {
            assert_eq!(job["status"], "waiting");
            assert!(job["due_at"].as_str().unwrap().ends_with(":00:00.000000Z"), "{job}");
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("it has not run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_server_has_ended_has_one_run() {
    let journal = journal().await;
    let slow = ScriptedModel::new().agent("main", [Turn::new().text("Well.").wait(ms(60_000)).text("Slow.")]);
    let first = rig(slow, &journal, 1).await;
    let job = add(&first, json!({ "session_id": "s", "run": { "input": "go" } })).await;
    for _ in 0..500 {
        if first.live_runs() == 1 {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    first.stop_now().await;
    let second = rig(says(3), &journal, 1).await;
    let job = until(&second, &job, "ended").await;
    assert_eq!(job["last_run"]["status"], "cancelled", "{job}");
    let runs = second.get_json("/v1/sessions/s/runs").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_run_has_begun_waits_for_it_and_begins_no_other() {
    let (journal, now) = (journal().await, SystemClock.now());
    let idle = rig(says(1), &journal, 0).await;
    let run = idle.run("s", "go").await;
    // The key of this run is forgotten, as after a day: it never had one.
    let job = Job::new("report".parse().unwrap(), json!({ "input": "go" }), now);
    let mut job = job.with_session("s".parse().unwrap());
    job.run_id = Some(run["id"].as_str().unwrap().parse().unwrap());
    assert!(journal.jobs().unwrap().add(job).await.unwrap());
    idle.stop_now().await;
    let rig = rig(says(0), &journal, 1).await;
    let job = until(&rig, &json!({ "id": "report" }), "ended").await;
    assert_eq!((&job["last_run"]["run_id"], &job["last_run"]["status"]), (&run["id"], &json!("success")));
    assert_eq!(job.get("run_id"), None, "{job}");
    assert_eq!(rig.get_json("/v1/sessions/s").await["runs"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_cancelled_while_it_waits_ends_the_run_that_has_begun() {
    let journal = journal().await;
    let slow = ScriptedModel::new().agent("main", [Turn::new().text("Well.").wait(ms(60_000)).text("Slow.")]);
    let rig = rig(slow, &journal, 1).await;
    let begun = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
    let run: Value = begun.json().await.unwrap();
    let in_an_hour = SystemClock.now().after(ms(3_600_000));
    let job = Job::new("report".parse().unwrap(), json!({ "input": "go" }), in_an_hour);
    let mut job = job.with_session("s".parse().unwrap());
    job.run_id = Some(run["id"].as_str().unwrap().parse().unwrap());
    assert!(journal.jobs().unwrap().add(job).await.unwrap());
    let cancelled = rig.post("/v1/jobs/report/cancel", json!({})).await.json::<Value>().await.unwrap();
    assert_eq!(cancelled["status"], "cancelling", "{cancelled}");
    let job = until(&rig, &json!({ "id": "report" }), "cancelled").await;
    assert_eq!((&job["last_run"]["run_id"], &job["last_run"]["status"]), (&run["id"], &json!("cancelled")));
    assert_eq!(rig.live_runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_job_is_refused_with_its_place() {
    let rig = rig(says(1), &journal().await, 0).await;
    let run = json!({ "input": "go" });
    for (body, status, code, place) in [
        (json!({}), 422, "bad_body", "run"),
        (json!({ "run": {} }), 422, "bad_body", "/run/input"),
        (json!({ "run": run, "cron": "daily" }), 422, "bad_body", "/cron"),
        (json!({ "run": run, "cron": "0 0 30 2 *" }), 422, "bad_body", "/cron"),
        (json!({ "run": run, "cron": "0 9 * * * Mars/Olympus" }), 422, "bad_body", "Mars/Olympus"),
        (
            json!({ "run": run, "cron": "0 9 * * *", "run_at": "2100-01-01T00:00:00Z" }),
            422,
            "bad_body",
            "run_at",
        ),
        (json!({ "run": run, "run_at": "tomorrow" }), 422, "bad_body", "/run_at"),
        (json!({ "run": run, "run_at": "9999-01-01T00:00:00Z" }), 422, "bad_body", "/run_at"),
        (json!({ "run": run, "priority": 40_000 }), 422, "bad_body", "/priority"),
        (json!({ "run": run, "session_id": "a/b" }), 422, "bad_body", "/session_id"),
        (json!({ "run": run, "id": "other/1" }), 422, "bad_body", "/id"),
        (json!({ "run": run, "often": true }), 422, "bad_body", "often"),
        (json!({ "run": [] }), 422, "bad_body", "/run"),
        (json!({ "run": { "input": "go", "options": [] } }), 422, "bad_body", "/run/options"),
        (
            json!({ "run": { "input": "go", "options": { "budget": [null] } } }),
            422,
            "bad_body",
            "/run/options/budget",
        ),
        (json!({ "run": { "input": "go", "agent": "stranger" } }), 404, "unknown_agent", "stranger"),
        (
            json!({ "run": { "input": "go", "options": { "max_depth": 200 } } }),
            422,
            "bad_body",
            "/run/options",
        ),
    ] {
        let response = rig.post("/v1/jobs", body.clone()).await;
        let found = response.status();
        let problem: Value = response.json().await.unwrap();
        assert_eq!((found.as_u16(), &problem["code"]), (status, &json!(code)), "{body}: {problem}");
        assert!(problem.to_string().contains(place), "{body}: {problem}");
    }
    add(&rig, json!({ "id": "one", "run": run })).await;
    let twice = rig.post("/v1/jobs", json!({ "id": "one", "run": run })).await;
    assert_eq!(twice.json::<Value>().await.unwrap()["code"], "exists");
    assert_eq!(rig.get("/v1/jobs/none").await.status(), 404);
    assert_eq!(rig.post("/v1/jobs/none/cancel", json!({})).await.status(), 404);
    assert_eq!(rig.stranger(Method::GET, "/v1/jobs").send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_jobs_and_runs_of_its_own() {
    let journal = journal().await;
    let harness = fleet(says(4)).with_journal(journal.clone());
    let acme = "the-token-of-acme-here";
    let rig = Rig::start(harness.clone(), |builder| {
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        builder.with_tokens(tokens.with_token(acme, Some("acme")).unwrap())
    })
    .await;
    let theirs = |method, path: &str| rig.stranger(method, path).bearer_auth(acme);
    let job = json!({ "id": "one", "session_id": "s", "run": { "input": "go" } });
    assert_eq!(theirs(Method::POST, "/v1/jobs").json(&job).send().await.unwrap().status(), 201);
    add(&rig, job.clone()).await;
    for _ in 0..500 {
        let job: Value = theirs(Method::GET, "/v1/jobs/one").send().await.unwrap().json().await.unwrap();
        if job["status"] == "ended" {
            assert_eq!(job["last_run"]["status"], "success", "{job}");
            let runs = theirs(Method::GET, "/v1/sessions/s/runs").send().await.unwrap();
            let runs: Value = runs.json().await.unwrap();
            assert_eq!(runs["items"][0]["id"], job["last_run"]["run_id"]);
            until(&rig, &job, "ended").await;
            // A job without a session has one of the tenant's.
            let own = json!({ "id": "own", "run": { "input": "go" } });
            assert_eq!(theirs(Method::POST, "/v1/jobs").json(&own).send().await.unwrap().status(), 201);
            let mut own = Value::Null;
            for _ in 0..500 {
                own = theirs(Method::GET, "/v1/jobs/own").send().await.unwrap().json().await.unwrap();
                if own["status"] == "ended" {
                    break;
                }
                tokio::time::sleep(ms(20)).await;
            }
            assert_eq!(own["last_run"]["session_id"], "own-1", "{own}");
            let session = theirs(Method::GET, "/v1/sessions/own-1").send().await.unwrap();
            assert_eq!(session.status(), 200);
            let all = rig.get_json("/v1/jobs?all=true").await;
            assert_eq!(all["items"].as_array().unwrap().len(), 1);
            // A server without a token of the tenant leaves its jobs to others.
            let other = json!({ "id": "two", "run": { "input": "go" } });
            rig.stop_now().await;
            assert!(add_as(&harness.clone().build().unwrap(), "acme", other).await);
            let second = Rig::start(harness, |builder| builder).await;
            tokio::time::sleep(ms(100)).await;
            let (jobs, id) = (journal.jobs().unwrap(), JobId::parse_scoped("acme/two").unwrap());
            let job = jobs.job(&id).await.unwrap().unwrap();
            assert_eq!((job.status.as_str(), job.attempt), ("waiting", 1));
            assert!(job.due_at > SystemClock.now());
            drop(second);
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("it has not run");
}

async fn add_as(harness: &mainstem::prelude::Harness, tenant: &str, job: Value) -> bool {
    let jobs = harness.tenant(tenant).unwrap().journal().unwrap().jobs().unwrap();
    let id = job["id"].as_str().unwrap().parse().unwrap();
    jobs.add(Job::new(id, job["run"].clone(), SystemClock.now())).await.unwrap()
}

/// However many servers there are, and whatever each of them could run.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_many_jobs_does_not_hold_up_another() {
    const MANY: usize = 30;
    let (acme, globex) = ("the-token-of-acme-here", "the-token-of-globex-here");
    for most in [None, Some(3)] {
        let journal = journal().await;
        let turns = (0..2 * MANY).map(|_| Turn::new().wait(ms(50)).text("Done."));
        let harness = fleet(ScriptedModel::new().agent("main", turns)).with_journal(journal.clone());
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(acme, Some("acme")).unwrap();
        let tokens = tokens.with_token(globex, Some("globex")).unwrap();
        let build = |builder: Builder| {
            let builder = builder.with_tokens(tokens.clone()).with_max_jobs(4);
            most.into_iter().fold(builder, Builder::with_max_jobs_per_tenant)
        };
        let rig = Rig::start(harness, build).await;
        let soon = SystemClock.now().after(ms(2_000));
        // The many are due before the few.
        for (token, count, due_at) in [(globex, 4, soon.after(ms(100))), (acme, MANY, soon)] {
            for number in 0..count {
                let id = format!("job-{number}");
                let job = json!({ "id": id, "run": { "input": "go" }, "run_at": due_at.to_string() });
                let request = rig.stranger(Method::POST, "/v1/jobs").bearer_auth(token).json(&job);
                assert_eq!(request.send().await.unwrap().status(), 201);
            }
        }
        let jobs = journal.jobs().unwrap();
        let count = async |tenant: &str, status: JobStatus| {
            let jobs = jobs.jobs(&[status]).await.unwrap();
            jobs.iter().filter(|job| job.id.tenant() == Some(tenant)).count()
        };
        while count("globex", JobStatus::Ended).await < 4 {
            let active = count("acme", JobStatus::Active).await;
            assert!(most.is_none_or(|most| active <= most), "{active}");
            tokio::time::sleep(ms(5)).await;
        }
        let ended = count("acme", JobStatus::Ended).await;
        assert!(ended < MANY * 2 / 3, "{most:?}: {ended} jobs of the other tenant came before");
        while count("acme", JobStatus::Ended).await < MANY {
            tokio::time::sleep(ms(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_only_so_many_jobs() {
    let journal = journal().await;
    let rig = rig(says(1), &journal, 0).await;
    let jobs = journal.jobs().unwrap();
    let added = stream::iter(0..9_999).for_each_concurrent(16, async |number| {
        let id = format!("job-{number}").parse().unwrap();
        assert!(jobs.add(Job::new(id, json!({ "input": "go" }), SystemClock.now())).await.unwrap());
    });
    added.await;
    let job = json!({ "id": "last", "run": { "input": "go" } });
    assert_eq!(rig.post("/v1/jobs", job).await.status(), 201);
    let refused = rig.post("/v1/jobs", json!({ "run": { "input": "go" } })).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "too_many_jobs");
    assert_eq!(rig.post("/v1/jobs/last/cancel", json!({})).await.status(), 202);
    assert_eq!(rig.post("/v1/jobs", json!({ "run": { "input": "go" } })).await.status(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_begins_though_callers_use_up_their_share() {
    let rig = rig(says(2), &journal().await, 1).await;
    let soon = SystemClock.now().after(ms(1_500)).to_string();
    let job = add(&rig, json!({ "run_at": soon, "run": { "input": "go" } })).await;
    let more = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
    );
    let half = rig.head("POST /v1/sessions/s/runs", &more);
    let mut held = Vec::new();
    loop {
        let refused = rig.post("/v1/sessions/s/runs", json!({ "resume": true })).await.status() == 429;
        if refused {
            break;
        }
        assert!(held.len() < 1000, "bodies have a limit");
        for _ in 0..10 {
            let mut stream = rig.connect().await;
            stream.write_all(half.as_bytes()).await.unwrap();
            held.push(stream);
        }
    }
    let job = until(&rig, &job, "ended").await;
    assert_eq!(job["last_run"]["status"], "success", "{job}");
    assert_eq!(rig.post("/v1/sessions/s/runs", json!({ "resume": true })).await.status(), 429, "still");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_jobs_without_a_listener() {
    let journal = journal().await;
    let idle = rig(says(0), &journal, 0).await;
    let job = add(&idle, json!({ "session_id": "s", "run": { "input": "go" } })).await;
    let harness = fleet(says(1)).with_journal(journal.clone()).build().unwrap();
    let worker = Server::new(harness).build().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (ended, ()) = tokio::join!(
        async {
            let ended = until(&idle, &job, "ended").await;
            stop.cancel();
            ended
        },
        worker.work(stop.clone())
    );
    assert_eq!(ended["last_run"]["status"], "success");
}
