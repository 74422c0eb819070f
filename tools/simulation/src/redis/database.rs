//! What a server stores: hashes that may expire. The commands are those that the scripts use.

use std::collections::BTreeMap;

use super::resp::Reply;
use super::scan::scan;

/// The data of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Database {
    hashes: BTreeMap<Vec<u8>, Hash>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Hash {
    pub(super) fields: BTreeMap<Vec<u8>, Vec<u8>>,
    /// In milliseconds since 1970.
    pub(super) expires: Option<i64>,
}

impl Database {
    /// Returns what is there at this time, in milliseconds since 1970.
    pub(super) fn hashes(&mut self, now: i64) -> &BTreeMap<Vec<u8>, Hash> {
        self.hashes.retain(|_, hash| hash.expires.is_none_or(|expires| expires >= now));
        &self.hashes
    }

    pub(super) fn insert(&mut self, key: Vec<u8>, hash: Hash) -> Option<Hash> {
        self.hashes.insert(key, hash)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Hash> {
        self.hashes.remove(key)
    }

    /// Carries out a command of a script; `None` if this is no command on data.
    pub(super) fn call(&mut self, command: &[u8], arguments: &[Vec<u8>], now: i64) -> Option<Reply> {
        if command == b"SCAN" {
            return scan(arguments, self.hashes(now).keys());
        }
        let [key, arguments @ ..] = arguments else { return None };
        if self.hashes.get(key).is_some_and(|hash| hash.expires.is_some_and(|expires| expires < now)) {
            self.hashes.remove(key);
        }
        Some(match command {
            b"HGET" => self.get(key, arguments.first()?),
            b"HMGET" => Reply::Array(arguments.iter().map(|field| self.get(key, field)).collect()),
            b"HKEYS" => Reply::Array(self.fields(key).map(|(field, _)| Reply::Bulk(field.clone())).collect()),
            b"HGETALL" => Reply::Array(
                self.fields(key)
                    .flat_map(|(field, value)| [Reply::Bulk(field.clone()), Reply::Bulk(value.clone())])
                    .collect(),
            ),
            b"HSET" => self.set(key, arguments),
            b"HDEL" => self.delete(key, arguments),
            b"PEXPIREAT" => self.expire(key, arguments.first()?, now),
            _ => return None,
        })
    }

    fn fields(&self, key: &[u8]) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.hashes.get(key).into_iter().flat_map(|hash| &hash.fields)
    }

    fn get(&self, key: &[u8], field: &[u8]) -> Reply {
        let value = self.hashes.get(key).and_then(|hash| hash.fields.get(field));
        value.map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
    }

    fn set(&mut self, key: &[u8], pairs: &[Vec<u8>]) -> Reply {
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Reply::Error("ERR wrong number of arguments for 'hset' command".to_owned());
        }
        let hash = self.hashes.entry(key.to_owned()).or_default();
        let before = hash.fields.len();
        hash.fields.extend(pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())));
        Reply::Integer((hash.fields.len() - before) as i64)
    }

    fn delete(&mut self, key: &[u8], fields: &[Vec<u8>]) -> Reply {
        let Some(hash) = self.hashes.get_mut(key) else { return Reply::Integer(0) };
        let before = hash.fields.len();
        fields.iter().for_each(|field| drop(hash.fields.remove(field)));
        let gone = before - hash.fields.len();
        if hash.fields.is_empty() {
            self.hashes.remove(key);
        }
        Reply::Integer(gone as i64)
    }

    fn expire(&mut self, key: &[u8], at: &[u8], now: i64) -> Reply {
        let Some(at) = std::str::from_utf8(at).ok().and_then(|at| at.parse::<i64>().ok()) else {
            return Reply::Error("ERR value is not an integer or out of range".to_owned());
        };
        let Some(hash) = self.hashes.get_mut(key) else { return Reply::Integer(0) };
        hash.expires = Some(at);
        if at <= now {
            self.hashes.remove(key);
        }
        Reply::Integer(1)
    }
}
