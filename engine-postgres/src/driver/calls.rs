//! The functions on the server, one per operation: their calls and answers.

use std::str::FromStr;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};
use uuid::Uuid;
use ylock_core::engine::AcquisitionId;
use ylock_core::{Error, ErrorKind, Owner, Result};

use crate::functions::quoted;

/// The function of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Acquire,
    Release,
    Renew,
    RenewMany,
    Inspect,
    Keys,
    Revoke,
    LastRun,
    StoreRun,
    Sweep,
}

impl Function {
    pub(super) const ALL: [Self; 10] = [
        Self::Acquire,
        Self::Release,
        Self::Renew,
        Self::RenewMany,
        Self::Inspect,
        Self::Keys,
        Self::Revoke,
        Self::LastRun,
        Self::StoreRun,
        Self::Sweep,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::RenewMany => "renew_many",
            Self::Inspect => "inspect",
            Self::Keys => "keys",
            Self::Revoke => "revoke",
            Self::LastRun => "last_run",
            Self::StoreRun => "store_run",
            Self::Sweep => "sweep",
        }
    }

    fn arguments(self) -> usize {
        match self {
            Self::Acquire | Self::Release | Self::Renew => 12,
            Self::RenewMany | Self::StoreRun => 4,
            Self::Keys => 3,
            Self::Revoke => 2,
            Self::Inspect | Self::LastRun | Self::Sweep => 1,
        }
    }

    /// Returns whether it lets waiters in. Its last argument is whether they can be told.
    pub(super) fn tells(self) -> bool {
        matches!(self, Self::Acquire | Self::Release | Self::Renew)
    }

    fn statement(self, namespace: &str) -> String {
        let arguments: Vec<_> = (1..=self.arguments()).map(|number| format!("${number}")).collect();
        let call = format!("{}.{}({})", quoted(namespace), self.name(), arguments.join(", "));
        // As a value where there is one: that costs the server less than a row of a table.
        match self {
            Self::Inspect | Self::Keys => format!("select * from {call}"),
            _ => format!("select {call}"),
        }
    }
}

/// The statements that call the functions of a namespace.
#[derive(Debug)]
pub(super) struct Statements([String; Function::ALL.len()]);

impl Statements {
    pub(super) fn of(namespace: &str) -> Self {
        Self(Function::ALL.map(|function| function.statement(namespace)))
    }

    pub(super) fn of_function(&self, function: Function) -> &str {
        &self.0[function as usize]
    }
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bytes(Option<Vec<u8>>),
    Identity(Option<Uuid>),
    Text(Option<String>),
    Number(Option<i64>),
    Small(i32),
    Flag(bool),
    ManyBytes(Vec<Vec<u8>>),
    Identities(Vec<Uuid>),
    Texts(Vec<&'static str>),
    Numbers(Vec<i64>),
}

impl Value {
    pub(crate) fn id(id: AcquisitionId) -> Self {
        Self::Identity(Some(Uuid::from_u128(id.as_u128())))
    }

    pub(crate) fn owner(owner: Owner) -> Self {
        Self::Identity(Some(Uuid::from_bytes(owner.to_bytes())))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Some(text.into()))
    }

    pub(super) fn to_sql(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Bytes(value) => (value, Type::BYTEA),
            Self::Identity(value) => (value, Type::UUID),
            Self::Text(value) => (value, Type::TEXT),
            Self::Number(value) => (value, Type::INT8),
            Self::Small(value) => (value, Type::INT4),
            Self::Flag(value) => (value, Type::BOOL),
            Self::ManyBytes(value) => (value, Type::BYTEA_ARRAY),
            Self::Identities(value) => (value, Type::UUID_ARRAY),
            Self::Texts(value) => (value, Type::TEXT_ARRAY),
            Self::Numbers(value) => (value, Type::INT8_ARRAY),
        }
    }
}

/// One call of a function.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) function: Function,
    pub(super) values: Vec<Value>,
}

impl Call {
    pub(crate) fn of(function: Function) -> Self {
        Self { function, values: Vec::with_capacity(function.arguments()) }
    }

    pub(crate) fn with(mut self, value: Value) -> Self {
        self.values.push(value);
        self
    }
}

/// The answer of a function.
#[derive(Debug)]
pub(crate) struct Answer {
    rows: Vec<Row>,
    function: Function,
}

impl Answer {
    pub(super) fn new(rows: Vec<Row>, function: Function) -> Self {
        Self { rows, function }
    }

    /// Returns the value of a function that returns one.
    pub(crate) fn value<'a, T: FromSql<'a>>(&'a self) -> Result<T> {
        let row = self.rows.first().ok_or_else(|| self.odd("nothing"))?;
        row.try_get(0).map_err(|error| self.odd(error))
    }

    pub(crate) fn flag(&self) -> Result<bool> {
        self.value()
    }

    /// Returns the words of a text.
    pub(crate) fn words(&self) -> Result<Words<'_>> {
        Ok(Words { rest: self.value()?, answer: self })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Fields<'_>> {
        self.rows.iter().map(|row| Fields { row, answer: self })
    }

    fn odd(&self, what: impl std::fmt::Display) -> Error {
        let message = format!("the function {} gave an unexpected answer: {what}", self.function.name());
        Error::new(ErrorKind::Unexpected, message)
    }
}

/// The words of an answer, one after the other.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    rest: &'a str,
    answer: &'a Answer,
}

impl<'a> Words<'a> {
    pub(crate) fn word(&mut self) -> Result<&'a str> {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        if word.is_empty() { Err(self.answer.odd("a word is missing")) } else { Ok(word) }
    }

    pub(crate) fn number<T: FromStr>(&mut self) -> Result<T> {
        let word = self.word()?;
        word.parse().map_err(|_| self.answer.odd(word))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.word()? == "1")
    }
}

/// A row of an answer.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    row: &'a Row,
    answer: &'a Answer,
}

impl<'a> Fields<'a> {
    pub(crate) fn get<T: FromSql<'a>>(&self, name: &str) -> Result<T> {
        self.row.try_get(name).map_err(|error| self.answer.odd(error))
    }

    pub(crate) fn identity(&self, name: &str) -> Result<u128> {
        self.get::<Uuid>(name).map(|id| id.as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_its_statement() {
        let statements = Statements::of("shop");
        for function in Function::ALL {
            let text = statements.of_function(function);
            assert!(text.contains(&format!("\"shop\".{}(", function.name())), "{text}");
        }
        assert_eq!(statements.of_function(Function::Revoke), "select \"shop\".revoke($1, $2)");
    }
}
