//! Servers that hear no notice of the database: a notice tells them sooner, and nothing else.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem::{
    api::{AnySession, NewRun},
    client::Server,
    message::SessionId,
};
use mainstem_testing::laws;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader, copy},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use crate::{
    client::{answer_all, one_run, read_through, until_asked},
    cluster::Cluster,
};

/// The type of the message that carries a notice (`NotificationResponse` in PostgreSQL's protocol).
const NOTICE: u8 = b'A';

/// A network before the database that drops its notices.
pub(crate) struct Silenced {
    port: u16,
    dropped: Arc<AtomicUsize>,
}

impl Silenced {
    pub(crate) async fn before(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, dropped) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let (counts, tasks) = (dropped.clone(), TaskTracker::new());
        #[expect(clippy::disallowed_methods, reason = "ends with the test\'s runtime")]
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tasks.spawn(forward(client, database, counts.clone()));
            }
        });
        Self { port, dropped }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

async fn forward(mut client: TcpStream, database: u16, dropped: Arc<AtomicUsize>) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", database)).await?;
    let ((mut from_client, mut to_client), (from_server, mut to_server)) = (client.split(), server.split());
    let up = async { copy(&mut from_client, &mut to_server).await.map(drop) };
    let down = async {
        let mut from_server = BufReader::new(from_server);
        loop {
            // A message has a type, its length without the type, and the rest.
            let (kind, length) = (from_server.read_u8().await?, from_server.read_u32().await?);
            let mut rest = vec![0; length as usize - 4];
            from_server.read_exact(&mut rest).await?;
            if kind == NOTICE {
                dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            to_client.write_u8(kind).await?;
            to_client.write_u32(length).await?;
            to_client.write_all(&rest).await?;
        }
    };
    tokio::select! { done = up => done, done = down => done }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_hear_no_notice_find_out_for_themselves() {
    let (cluster, silenced) = Cluster::without_notices(2).await;
    let session: SessionId = "s".parse().unwrap();
    // The first server has the session, and the other one is asked.
    one_run(&cluster.address_of(0), &session, "first", None).await;
    let owner = Server::at(&cluster.address_of(0)).unwrap().open(session.clone()).unwrap();
    owner.run(NewRun::new("held")).await.unwrap();
    let begun = Instant::now();
    let view = Server::at(&cluster.address_of(1)).unwrap().open(session.clone()).unwrap();
    until_asked(&view).await;
    answer_all(&view).await;
    let seen = one_run(&cluster.address_of(1), &session, "second", None).await;
    assert!(seen.last().unwrap().to_string().contains("success"), "{seen:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let read = read_through(&cluster.address_of(1), &session, seen.last().unwrap().seq).await;
    laws(&read).unwrap();
    assert!(
        silenced.dropped.load(Ordering::Relaxed) > 0,
        "the database has told nothing that could be dropped"
    );
}
