//! Renewal: one request for each grant, which also shows what its holder wants to be shown.

use ylock_core::Result;
use ylock_core::engine::{Grant, Holding, LossReason, Renewal};
use ylock_core::environment::Moment;

use crate::client::Client;
use crate::driver::{Answer, scripts};
use crate::words::{mode_word, ticket_word};

/// Renews one grant. A loss is only reported: the grant stays on the server until it is released.
pub(crate) async fn renew(client: &Client, holding: &Holding) -> Result<Renewal> {
    let Grant { key, id, mode, lease, .. } = &holding.grant;
    let mut call = client.call(&scripts::RENEW, key).id(*id).arg(mode_word(*mode)).arg(lease.as_millis());
    if let Some(next) = &holding.next {
        let channel = client.channel(call.place());
        call = call
            .id(next.id)
            .arg(mode_word(next.mode))
            .arg(next.lease.as_millis())
            .arg(&*ticket_word(next.ticket))
            .owner(next.owner)
            .arg(&*channel)
            .arg(next.client.as_str());
    }
    let sent = client.now();
    let mut answer = client.store.call(call).await?;
    read(&mut answer, sent)
}

fn read(answer: &mut Answer, sent: Moment) -> Result<Renewal> {
    if answer.flag()? {
        return Ok(Renewal::Renewed { sent, contended: answer.flag()? });
    }
    Ok(Renewal::Lost(match answer.word()?.as_str() {
        "revoked" => LossReason::Revoked,
        _ => LossReason::Gone,
    }))
}
