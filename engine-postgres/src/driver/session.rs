//! A connection for requests, and the statements that the server has prepared for it.

use tokio::sync::OnceCell;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error as DriverError, Row, Statement};
use ylock_core::connection::Connected;

use super::calls::Function;

/// An argument of a statement, with its type.
pub(super) type Argument<'a> = (&'a (dyn ToSql + Sync), Type);

/// What a request says to the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text<'a> {
    /// The call of a function, which is prepared where it can be.
    Call(Function, &'a str),
    /// A statement that is sent rarely.
    Rare(&'a str),
}

/// A connection for requests; see the [module](self).
pub(super) struct Session {
    client: Client,
    /// Prepared when they are first needed: parsing and planning a statement costs the server about as much as running it. `None` if not every request of this
    /// connection reaches the same session of the server, as through a pooler: there a name may mean nothing, or what another client has prepared.
    prepared: Option<[OnceCell<Statement>; Function::ALL.len()]>,
}

impl Connected for Session {
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

impl Session {
    /// `is_own`: whether the session on the server is this connection's own for as long as it lasts.
    pub(super) fn new(client: Client, is_own: bool) -> Self {
        Self { client, prepared: is_own.then(Default::default) }
    }

    pub(super) async fn ask(
        &self,
        text: Text<'_>,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Row>, DriverError> {
        match (text, &self.prepared) {
            (Text::Call(function, text), Some(prepared)) => {
                let types = || arguments.iter().map(|(_, of)| of.clone()).collect::<Vec<_>>();
                let prepare = || async { self.client.prepare_typed(text, &types()).await };
                let statement = prepared[function as usize].get_or_try_init(prepare).await?;
                let values: Vec<_> = arguments.iter().map(|(value, _)| *value).collect();
                self.client.query(statement, &values).await
            }
            (Text::Call(_, text) | Text::Rare(text), _) => self.client.query_typed(text, arguments).await,
        }
    }
}
