//! The contracts of journals and task stores, over a PostgreSQL server.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

use std::sync::Arc;

use mainstem_journal::{Journal, Scoped};
use mainstem_postgres::{Node, Settings};
use mainstem_testing::{Postgres, journal, task_store};

async fn join(server: &Postgres) -> Node {
    Node::join(Settings::parse(&server.url()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn the_journal_keeps_the_contract() {
    let server = Postgres::start();
    journal::check(Arc::new(join(&server).await.journal())).await;
}

#[tokio::test]
async fn pages_keep_the_contract() {
    let server = Postgres::start();
    journal::check_pages(&(Arc::new(join(&server).await.journal()) as Arc<dyn Journal>)).await;
}

#[tokio::test]
async fn data_of_a_tenant_leaves_room_for_others() {
    let server = Postgres::start();
    journal::check_data(&join(&server).await.journal()).await;
}

#[tokio::test]
async fn jobs_keep_the_contract() {
    let server = Postgres::start();
    journal::check_jobs(&(Arc::new(join(&server).await.journal()) as Arc<dyn Journal>)).await;
}

#[tokio::test]
async fn a_part_of_the_journal_keeps_the_contract() {
    let server = Postgres::start();
    let whole: Arc<dyn Journal> = Arc::new(join(&server).await.journal());
    journal::check(Arc::new(Scoped::new(whole, "acme".parse().unwrap()))).await;
}

#[tokio::test]
async fn the_task_store_keeps_the_contract() {
    let server = Postgres::start();
    task_store::check(Arc::new(join(&server).await.tasks())).await;
}
