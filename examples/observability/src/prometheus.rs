//! Asking a Prometheus.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// One that answers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Prometheus {
    /// Where.
    pub address: SocketAddr,
}

/// A series, or what an expression made of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Series {
    /// What tells it from the others.
    pub labels: BTreeMap<String, String>,
    /// Seconds since 1970, and the value then.
    pub points: Vec<(f64, f64)>,
}

/// From when to when, and how often, in seconds.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an example")]
pub struct Range {
    /// The first moment.
    pub start: f64,
    /// The last moment.
    pub end: f64,
    /// From one point to the next.
    pub step: f64,
}

impl Prometheus {
    /// The one at this address.
    pub fn at(address: SocketAddr) -> Self {
        Self { address }
    }

    /// What an expression was over a time.
    ///
    /// # Errors
    /// If it does not answer, or not with success.
    pub fn range(&self, expression: &str, range: Range) -> Result<Vec<Series>> {
        let Range { start, end, step } = range;
        let query = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        let path = format!("/api/v1/query_range?query={query}&start={start}&end={end}&step={step}");
        let data = self.ask(&path)?;
        let result = data["result"].as_array().context("no result")?;
        result.iter().map(|one| series(one, one["values"].as_array())).collect()
    }

    /// What an expression is now.
    ///
    /// # Errors
    /// If it does not answer, or not with success.
    pub fn now(&self, expression: &str) -> Result<Vec<Series>> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(expression, NON_ALPHANUMERIC));
        let data = self.ask(&path)?;
        let result = data["result"].as_array().context("no result")?;
        result.iter().map(|one| series(one, Some(&vec![one["value"].clone()]))).collect()
    }

    /// What its API says under this path.
    ///
    /// # Errors
    /// If it does not answer, or not with success.
    pub fn ask(&self, path: &str) -> Result<Value> {
        let answer: Value = serde_json::from_str(&get(self.address, path)?)?;
        if answer["status"] != "success" {
            bail!("Prometheus says: {}", answer["error"]);
        }
        Ok(answer["data"].clone())
    }
}

fn series(one: &Value, points: Option<&Vec<Value>>) -> Result<Series> {
    let point = |point: &Value| Some((point[0].as_f64()?, point[1].as_str()?.parse().ok()?));
    let points = points.context("no points")?.iter().map(|p| point(p).context("no point"));
    let labels = one["metric"].as_object().context("no labels")?.iter();
    Ok(Series {
        labels: labels.map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned())).collect(),
        points: points.collect::<Result<_>>()?,
    })
}

/// The body of the answer. HTTP/1.0, because then it ends where the connection ends.
///
/// # Errors
/// If there is no answer within 10 s, or one without a body.
pub fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    Ok(body.to_owned())
}

const PATIENCE: Duration = Duration::from_secs(10);
