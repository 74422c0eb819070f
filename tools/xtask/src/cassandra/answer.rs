//! The answers of a server in the native protocol (version 4), as far as we need them.

use anyhow::{Result, bail};

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Authenticate,
    Authenticated,
    Ready,
    Rows(u32),
    Void,
}

impl Answer {
    pub(crate) fn read(opcode: u8, body: &[u8]) -> Result<Self> {
        let mut body = Body { rest: body };
        Ok(match opcode {
            0x00 => {
                let code = body.int()?;
                bail!("{} (CQL error {code:#06x})", body.string()?)
            }
            0x02 => Self::Ready,
            0x03 => Self::Authenticate,
            0x10 => Self::Authenticated,
            0x08 if body.int()? == ROWS => Self::Rows(body.row_count()?),
            0x08 => Self::Void,
            _ => bail!("unknown opcode {opcode}"),
        })
    }
}

struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            bail!("the answer of Cassandra ends too early")
        };
        self.rest = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take(2)?.try_into()?))
    }

    fn int(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn string(&mut self) -> Result<&'a str> {
        let length = self.short()?;
        Ok(std::str::from_utf8(self.take(length.into())?)?)
    }

    /// Returns the number of rows, which follows the description of the columns. Columns of simple types only.
    fn row_count(&mut self) -> Result<u32> {
        let (flags, columns) = (self.int()?, self.int()?);
        if flags != ONE_TABLE {
            bail!("unexpected description of the rows ({flags})");
        }
        let (_keyspace, _table) = (self.string()?, self.string()?);
        for _ in 0..columns {
            let (_name, kind) = (self.string()?, self.short()?);
            if !SIMPLE_TYPES.contains(&kind) {
                bail!("unexpected type of a column ({kind})");
            }
        }
        self.int()
    }
}

/// The kind of a result that has rows.
const ROWS: u32 = 2;
const ONE_TABLE: u32 = 1;
const SIMPLE_TYPES: std::ops::RangeInclusive<u16> = 0x01..=0x15;

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn counts_rows_behind_their_description() {
        let table = [string("system"), string("peers")].concat();
        let column = [string("peer"), vec![0, 0x10]].concat();
        let head = [2_u32, 1, 1].map(u32::to_be_bytes).concat();
        let body = [head, table, column, vec![0, 0, 0, 2], vec![0; 16]].concat();
        assert_eq!(Answer::read(0x08, &body).unwrap(), Answer::Rows(2));
    }

    #[test]
    fn an_error_keeps_what_the_server_said() {
        let body = [vec![0, 0, 1, 0], string("Bad credentials")].concat();
        let error = Answer::read(0x00, &body).unwrap_err();
        assert_eq!(error.to_string(), "Bad credentials (CQL error 0x0100)");
    }

    #[test]
    fn a_short_answer_is_an_error() {
        Answer::read(0x08, &[0, 0]).unwrap_err();
    }
}
