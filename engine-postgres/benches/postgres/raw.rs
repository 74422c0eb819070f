//! What the engine cannot be faster than: two updates of one row, prepared, over one connection.

use tokio_postgres::{Client, Statement};

/// See the [module](self).
pub(crate) struct Raw {
    client: Client,
    update: Statement,
}

impl Raw {
    pub(crate) async fn connect() -> Self {
        let client = super::connect().await;
        let table = "create schema if not exists bench;
            create table if not exists bench.raw (key text primary key, value text not null) with (fillfactor = 50);
            insert into bench.raw values ('0', '') on conflict do nothing";
        client.batch_execute(table).await.expect("a table");
        let update =
            client.prepare("update bench.raw set value = $2 where key = $1").await.expect("prepared");
        Self { client, update }
    }

    pub(crate) async fn pair(&self) {
        for value in ["held", "free"] {
            assert_eq!(self.client.execute(&self.update, &[&"0", &value]).await.expect("updated"), 1);
        }
    }
}
