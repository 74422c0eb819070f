//! Renewal: many grants in one request, and a request of its own for each that has a waiter of the same client behind it.

use futures_util::future::{join, join_all};
use uuid::Uuid;
use ylock_core::engine::{Grant, Holding, LossReason, Renewal};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result};

use crate::client::Client;
use crate::driver::{Call, Function, Value};
use crate::place;
use crate::words::{micros, mode_word};

/// The most grants that are renewed in one request: their rows are locked until it has ended.
const MOST: usize = 64;
/// The answer about a grant whose lock was locked by another transaction.
const LOCKED: &str = "locked";

/// Renews grants. A loss is only reported: the grant stays on the server until it is released.
pub(crate) async fn renew(client: &Client, holdings: &[Holding]) -> Vec<Result<Renewal>> {
    let is_plain = |holding: &Holding| holding.next.is_none();
    let (mut plain, mut alone): (Vec<_>, Vec<_>) =
        (0..holdings.len()).partition(|place| is_plain(&holdings[*place]));
    if let [only] = plain[..] {
        alone.push(only);
        plain.clear();
    }
    let batches = join_all(plain.chunks(MOST).map(|places| renew_many(client, holdings, places)));
    let singles = join_all(alone.iter().map(|place| renew_one(client, &holdings[*place])));
    let (batches, singles) = join(batches, singles).await;
    let mut answers: Vec<Option<Result<Renewal>>> = holdings.iter().map(|_| None).collect();
    let places = alone.iter().copied().zip(singles).chain(batches.into_iter().flatten());
    for (place, answer) in places {
        answers[place] = Some(answer);
    }
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(odd("no answer")))).collect()
}

/// Renews grants that have no waiter behind them, in one request; and each by itself whose lock was locked by another transaction.
async fn renew_many(
    client: &Client,
    holdings: &[Holding],
    places: &[usize],
) -> Vec<(usize, Result<Renewal>)> {
    let grants: Vec<&Grant> = places.iter().map(|place| &holdings[*place].grant).collect();
    let call = Call::of(Function::RenewMany)
        .with(Value::ManyBytes(grants.iter().map(|grant| place::of(&grant.key)).collect()))
        .with(Value::Identities(grants.iter().map(|grant| Uuid::from_u128(grant.id.as_u128())).collect()))
        .with(Value::Texts(grants.iter().map(|grant| mode_word(grant.mode)).collect()))
        .with(Value::Numbers(grants.iter().map(|grant| micros(grant.lease)).collect()));
    let sent = client.now();
    let said = client.store.call(call).await.and_then(|answer| answer.value::<Vec<String>>());
    let said = match said {
        Ok(said) if said.len() == places.len() => said,
        Ok(_) => return places.iter().map(|place| (*place, Err(odd("another number of answers")))).collect(),
        Err(error) => return places.iter().map(|place| (*place, Err(error.clone()))).collect(),
    };
    join_all(places.iter().zip(&said).map(async |(place, said)| {
        let answer =
            if said == LOCKED { renew_one(client, &holdings[*place]).await } else { read(said, sent) };
        (*place, answer)
    }))
    .await
}

async fn renew_one(client: &Client, holding: &Holding) -> Result<Renewal> {
    let Grant { key, id, mode, lease, .. } = &holding.grant;
    let call = Call::at(Function::Renew, key).with(Value::id(*id)).word(mode_word(*mode)).time(*lease);
    let call = match &holding.next {
        Some(next) => call
            .with(Value::id(next.id))
            .word(mode_word(next.mode))
            .time(next.lease)
            .ticket(next.ticket)
            .with(Value::owner(next.owner))
            .with(Value::Number(client.channel()))
            .with(Value::text(next.client.as_str())),
        None => call
            .with(Value::Identity(None))
            .with(Value::Text(None))
            .with(Value::Number(None))
            .ticket(None)
            .with(Value::Identity(None))
            .with(Value::Number(None))
            .with(Value::Text(None)),
    };
    let sent = client.now();
    read(client.store.call(call).await?.value()?, sent)
}

fn read(said: &str, sent: Moment) -> Result<Renewal> {
    match said.split_once(' ') {
        Some(("renewed", contended)) => Ok(Renewal::Renewed { sent, contended: contended == "1" }),
        _ if said == "asserted" => Ok(Renewal::Kept { sent }),
        _ if said == "revoked" => Ok(Renewal::Lost(LossReason::Revoked)),
        _ if said == "gone" => Ok(Renewal::Lost(LossReason::Gone)),
        _ => Err(odd(said)),
    }
}

fn odd(said: &str) -> Error {
    Error::new(ErrorKind::Unexpected, format!("a renewal was answered by {said:?}"))
}
