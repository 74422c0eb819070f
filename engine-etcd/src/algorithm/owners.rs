//! The key that stands for the holder of a lock, for transactions of others.

use ylock_core::{Key, Result, Token};

use super::contender::Contender;
use super::inspect::{shown, token_of};
use super::link::Link;
use super::{floor, store::to_error};

/// Returns the key of the contender that holds a lock under this token, and the revision that made it. Tokens of hand-overs inside a client are those
/// of its grant.
pub(crate) async fn find(link: &Link, key: &Key, token: Token) -> Result<Option<(Vec<u8>, i64)>> {
    let (header, shown) = shown(link, key).await?;
    let floor = floor::agree(link, header.cluster, 0).await.map_err(to_error)?;
    let all: Vec<_> = shown.into_iter().map(|(contender, _)| contender).collect();
    let is_its = |contender: &&Contender| {
        // A grant has the tokens from its own to the one before the next contender's.
        token_of(contender, floor).is_some_and(|own| {
            let (first, given) = (Token::from(own).get(), token.get());
            given >= first && given - first < HAND_OVERS
        })
    };
    let found =
        all.iter().filter(|contender| ylock_core::queue::places::holds(&all, *contender)).find(is_its);
    Ok(found.map(|contender| (contender.key.clone(), contender.place)))
}

/// How many tokens of a client there are for each token of the store: one for each hand-over.
const HAND_OVERS: i64 = 1 << 10;
