//! A client for a Prometheus server.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// A Prometheus server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Prometheus {
    /// The address of the server.
    pub address: SocketAddr,
}

/// A series, or the result of an expression on series.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Series {
    /// The labels that tell the series from the others.
    pub labels: BTreeMap<String, String>,
    /// The points: seconds since 1970, and the value at that time.
    pub points: Vec<(f64, f64)>,
}

/// A range of time with a step, in seconds.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an example")]
pub struct Range {
    /// The first moment.
    pub start: f64,
    /// The last moment.
    pub end: f64,
    /// The time from one point to the next.
    pub step: f64,
}

impl Prometheus {
    /// Returns the server at this address.
    pub fn at(address: SocketAddr) -> Self {
        Self { address }
    }

    /// Returns the values of an expression over a range of time.
    ///
    /// # Errors
    /// If the server does not answer, or answers with an error.
    pub fn range(&self, expression: &str, range: Range) -> Result<Vec<Series>> {
        let Range { start, end, step } = range;
        let query = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        let path = format!("/api/v1/query_range?query={query}&start={start}&end={end}&step={step}");
        let data = self.ask(&path)?;
        let result = data["result"].as_array().context("no result")?;
        result.iter().map(|one| series(one, one["values"].as_array())).collect()
    }

    /// Returns the present value of an expression.
    ///
    /// # Errors
    /// If the server does not answer, or answers with an error.
    pub fn now(&self, expression: &str) -> Result<Vec<Series>> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(expression, NON_ALPHANUMERIC));
        let data = self.ask(&path)?;
        let result = data["result"].as_array().context("no result")?;
        result.iter().map(|one| series(one, Some(&vec![one["value"].clone()]))).collect()
    }

    /// Returns the answer of the server's API under this path.
    ///
    /// # Errors
    /// If the server does not answer, or answers with an error.
    pub fn ask(&self, path: &str) -> Result<Value> {
        let answer: Value = serde_json::from_str(&get(self.address, path)?)?;
        if answer["status"] != "success" {
            bail!("Prometheus answered with an error: {}", answer["error"]);
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

/// Returns the body of the answer to an HTTP request. HTTP/1.0, because then the body ends where the connection ends.
///
/// # Errors
/// If there is no answer within a minute, or an answer without a body.
pub fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("the answer has no body")?;
    Ok(body.to_owned())
}

const PATIENCE: Duration = Duration::from_secs(60);
