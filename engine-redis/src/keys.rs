//! The keys of the locks that are there: a walk over all keys of each server, one server after the other.

use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::{Answer, Call, scripts};
use crate::place;
use crate::words::{BETWEEN, NONE};

/// The number of keys that a server looks at for one page, about: few enough that the requests for locks behind it do not wait for long.
const LOOKED_AT: u32 = 500;

/// How far a listing is: what a page says is next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Walk {
    /// Where the walk over the keys of one server stands, in the server's words; zero at the beginning.
    cursor: u64,
    /// The run of the server that said so.
    run: String,
    /// The server.
    server: String,
    /// The servers that have been walked over. By name, and not by how many they are: meanwhile another server may have taken over.
    done: Vec<String>,
}

/// Returns a page of the keys of the locks that are there, free ones included that were in use a moment ago.
pub(crate) async fn keys(client: &Client, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let walk = match after {
        Some(next) => Walk::read(next).ok_or_else(KeyPage::wrong)?,
        None => {
            client.store.look().await;
            Walk::over(Vec::new())
        }
    };
    let Some(walk) = walk.among(&client.store.masters()?) else { return Ok(KeyPage::default()) };
    let call = Call::of_server(&scripts::KEYS).arg(walk.cursor).arg(&walk.run);
    let call = call.arg(client.pattern_of(group)).arg(LOOKED_AT);
    let mut answer = client.store.call_on(&walk.server, call).await?;
    let (cursor, run) = (answer.number()?, answer.word()?);
    let keys = client.read_keys(&mut answer, group)?;
    let next = if cursor == 0 { walk.next_server(client).await? } else { Some(Walk { cursor, run, ..walk }) };
    Ok(KeyPage::new(keys, next.map(|next| next.write())))
}

impl Walk {
    /// Returns the walk that has these servers behind it.
    fn over(done: Vec<String>) -> Self {
        Self { cursor: 0, run: NONE.to_owned(), server: String::new(), done }
    }

    /// Returns the walk on the server that it is on, or if that one keeps no locks any more, on one that has not been walked over.
    fn among(self, masters: &[String]) -> Option<Self> {
        if masters.contains(&self.server) {
            return Some(self);
        }
        let server = masters.iter().find(|master| !self.done.contains(master))?.clone();
        Some(Self { server, ..Self::over(self.done) })
    }

    /// Returns the walk on the server after this one, if there is one: servers are looked for anew, as one may have taken over.
    async fn next_server(self, client: &Client) -> Result<Option<Self>> {
        let Self { mut done, server, .. } = self;
        done.push(server);
        client.store.look().await;
        Ok(Self::over(done).among(&client.store.masters()?))
    }

    fn write(&self) -> String {
        let Self { cursor, run, server, done } = self;
        let mut text = format!("{cursor}{BETWEEN}{run}{BETWEEN}{server}");
        for server in done {
            text.push(BETWEEN);
            text.push_str(server);
        }
        text
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(BETWEEN);
        let (cursor, run) = (words.next()?.parse().ok()?, words.next()?);
        let mut servers = words.map(|word| (!word.is_empty()).then(|| word.to_owned()));
        let server = servers.next()??;
        let walk = Self { cursor, run: run.to_owned(), server, done: servers.collect::<Option<_>>()? };
        let is_run = run == NONE || !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_run && walk.write() == text).then_some(walk)
    }
}

impl Client {
    fn pattern_of(&self, group: Option<&str>) -> String {
        place::pattern(self.prefix(), group)
    }

    fn read_keys(&self, answer: &mut Answer, group: Option<&str>) -> Result<Vec<Key>> {
        let places = answer.texts()?;
        let keys = places.iter().filter_map(|place| place::read(self.prefix(), place));
        // The pattern also fits names that only look as if they were of the group.
        Ok(keys.filter(|key| group.is_none_or(|group| key.group() == group)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(server: &str, done: &[&str]) -> Walk {
        let done = done.iter().map(|&server| server.to_owned()).collect();
        Walk { cursor: 17, run: "ab01".to_owned(), server: server.to_owned(), done }
    }

    fn masters(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        for walk in [walk("a:1", &[]), walk("[::1]:2", &["a:1", "b:1"])] {
            assert_eq!(Walk::read(&walk.write()), Some(walk));
        }
    }

    #[test]
    fn what_no_page_has_said_is_not_read() {
        for wrong in [
            "",
            "17",
            "17 ab01",
            "17 ab01 ",
            "x ab01 a:1",
            "17 xy a:1",
            "17 ab01 a:1 ",
            "+17 ab01 a:1",
            "-1 - a:1",
        ] {
            assert_eq!(Walk::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn each_server_is_walked_over_and_one_that_has_taken_over_from_the_beginning() {
        let all = masters(&["a:1", "b:1", "c:1"]);
        assert_eq!(walk("b:1", &["a:1"]).among(&all), Some(walk("b:1", &["a:1"])));
        let begun = Walk::over(masters(&["b:1"])).among(&all).unwrap();
        assert_eq!((begun.cursor, begun.run.as_str(), begun.server.as_str()), (0, NONE, "a:1"));
        let after_failover = walk("gone:1", &["a:1", "b:1"]).among(&all).unwrap();
        assert_eq!((after_failover.cursor, after_failover.server.as_str()), (0, "c:1"));
        assert_eq!(Walk::over(all.clone()).among(&all), None);
    }
}
