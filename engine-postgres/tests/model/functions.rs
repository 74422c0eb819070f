//! The functions on the server.

use async_trait::async_trait;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;
use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, LossReason, Renewal, Ticket};
use ylock_core::environment::Moment;
use ylock_testkit::model::{Asked, Driven, Hears, LEASE, Manner, Reply, Shown};

use super::server;

const CLIENT: &str = "a client";

/// See the [module](self).
pub(crate) struct Functions {
    client: Client,
    /// Has the advisory lock of the channel that this test listens on.
    _listening: Client,
    channel: i64,
    /// The schema in which they are, as SQL has it.
    schema: String,
}

impl Functions {
    pub(crate) async fn connect() -> Self {
        // A client has made the functions, if there were none.
        drop(server::engine(Default::default()).await);
        Self::of("ylock".to_owned()).await
    }

    pub(crate) async fn of(schema: String) -> Self {
        let listening = server::raw().await;
        let channel = i64::try_from(rand() >> 1).expect("63 bits");
        listening.query_one("select pg_advisory_lock($1)", &[&channel]).await.expect("locked");
        Self { client: server::raw().await, _listening: listening, channel, schema }
    }

    fn text(&self, statement: &str) -> String {
        statement.replace("ylock.", &format!("{}.", self.schema))
    }

    async fn ask(&self, statement: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Row {
        self.client.query_typed_one(&self.text(statement), values).await.expect("an answer")
    }

    fn channel(&self, hears: Hears) -> Option<i64> {
        match hears {
            Hears::Told => Some(self.channel),
            Hears::Asks => None,
            // No client listens there.
            Hears::Nothing => Some(self.channel ^ 1),
        }
    }
}

#[async_trait]
impl Driven for Functions {
    async fn acquire(&mut self, place: &str, asked: Asked, manner: Manner) -> (Reply, Option<u64>) {
        let Asked { id, mode, hears } = asked;
        let statement = "select ylock.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true)";
        let row = self
            .ask(
                statement,
                &[
                    (&place.as_bytes(), Type::BYTEA),
                    (&uuid(id), Type::UUID),
                    (&word(mode), Type::TEXT),
                    (&lease(), Type::INT8),
                    (&!manner.tries, Type::BOOL),
                    (&!manner.unfair, Type::BOOL),
                    (&manner.ticket.map(Ticket::get), Type::INT8),
                    (&lease(), Type::INT8),
                    (&uuid(id), Type::UUID),
                    (&self.channel(hears), Type::INT8),
                    (&CLIENT, Type::TEXT),
                ],
            )
            .await;
        let words: Vec<&str> = row.get::<_, &str>(0).split(' ').collect();
        match words[..] {
            ["granted", token, contended] => {
                (Reply::Granted { contended: contended == "1" }, Some(token.parse().unwrap()))
            }
            ["queued", ..] => (Reply::Queued, None),
            ["busy"] => (Reply::Busy, None),
            ["undone"] => (Reply::Undone, None),
            ref other => panic!("{other:?}"),
        }
    }

    async fn release(&mut self, place: &str, id: AcquisitionId, is_late: bool, next: Option<Asked>) -> bool {
        let statement = "select ylock.release($1, $2, $3, $4, $5, $6, null, $6, $7, $8, $9, true)";
        let row = self
            .ask(
                statement,
                &[
                    (&place.as_bytes(), Type::BYTEA),
                    (&uuid(id), Type::UUID),
                    (&if is_late { lease() } else { 0 }, Type::INT8),
                    (&next.map(|next| uuid(next.id)), Type::UUID),
                    (&next.map(|next| word(next.mode)), Type::TEXT),
                    (&lease(), Type::INT8),
                    (&next.map(|next| uuid(next.id)), Type::UUID),
                    (&next.and_then(|next| self.channel(next.hears)), Type::INT8),
                    (&CLIENT, Type::TEXT),
                ],
            )
            .await;
        row.get(0)
    }

    async fn renew(&mut self, place: &str, id: AcquisitionId, mode: Mode, behind: Option<Asked>) -> Renewal {
        let statement = "select ylock.renew($1, $2, $3, $4, $5, $6, $4, null, $7, $8, $9, true)";
        let row = self
            .ask(
                statement,
                &[
                    (&place.as_bytes(), Type::BYTEA),
                    (&uuid(id), Type::UUID),
                    (&word(mode), Type::TEXT),
                    (&lease(), Type::INT8),
                    (&behind.map(|behind| uuid(behind.id)), Type::UUID),
                    (&behind.map(|behind| word(behind.mode)), Type::TEXT),
                    (&behind.map(|behind| uuid(behind.id)), Type::UUID),
                    (&behind.and_then(|behind| self.channel(behind.hears)), Type::INT8),
                    (&CLIENT, Type::TEXT),
                ],
            )
            .await;
        match row.get::<_, &str>(0) {
            "renewed 1" => Renewal::Renewed { sent: Moment::ZERO, contended: true },
            "renewed 0" => Renewal::Renewed { sent: Moment::ZERO, contended: false },
            "revoked" => Renewal::Lost(LossReason::Revoked),
            "gone" => Renewal::Lost(LossReason::Gone),
            other => panic!("{other}"),
        }
    }

    async fn revoke(&mut self, place: &str, id: AcquisitionId) -> bool {
        let values: [(&(dyn ToSql + Sync), Type); 2] =
            [(&place.as_bytes(), Type::BYTEA), (&uuid(id), Type::UUID)];
        self.ask("select ylock.revoke($1, $2)", &values).await.get(0)
    }

    /// Returns what the tables show; what the row says of them must be so.
    async fn show(&mut self, place: &str) -> Shown {
        let key = place.as_bytes();
        let key: [(&(dyn ToSql + Sync), Type); 1] = [(&key, Type::BYTEA)];
        let rows = |statement: &'static str| async {
            self.client.query_typed(&self.text(statement), &key).await.unwrap()
        };
        let locks = rows("select id, mode, waiting, shared from ylock.lock where key = $1").await;
        let readers = rows("select id, 'r' from ylock.reader where key = $1").await;
        let waiters =
            rows("select id, mode, ticket from ylock.waiter where key = $1 order by ticket, number").await;
        let says = |place: usize| locks.first().is_some_and(|row| row.get::<_, bool>(place));
        assert_eq!(
            (says(2), says(3)),
            (!waiters.is_empty(), !readers.is_empty()),
            "the row knows of the others"
        );
        let first = locks.iter().filter(|row| row.get::<_, Option<Uuid>>(0).is_some());
        let mut holders: Vec<_> = first.chain(&readers).map(|row| (read(row), mode(row.get(1)))).collect();
        holders.sort_unstable_by_key(|(id, _)| *id);
        let queue = waiters.iter().map(|row| (read(row), mode(row.get(1)), Ticket::from_number(row.get(2))));
        Shown { holders, queue: queue.collect() }
    }

    async fn remove(&mut self, place: &str) {
        for table in ["lock", "reader", "waiter"] {
            let statement = format!("delete from ylock.{table} where key = $1");
            self.client.execute(&self.text(&statement), &[&place.as_bytes()]).await.expect("removed");
        }
    }
}

fn rand() -> u64 {
    u64::from_be_bytes(ylock_core::Owner::new().to_bytes()[..8].try_into().expect("eight bytes"))
}

fn uuid(id: AcquisitionId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

fn read(row: &Row) -> AcquisitionId {
    AcquisitionId::from_u128(row.get::<_, Uuid>(0).as_u128())
}

/// Returns the lease of all, in microseconds.
fn lease() -> i64 {
    i64::try_from(LEASE.as_micros()).expect("a lease")
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
    }
}

fn mode(word: &str) -> Mode {
    if word == "w" { Mode::Write } else { Mode::Read }
}
