//! A Redis server in memory, on which the engine runs with its driver and its scripts, byte for byte.
//!
//! - `server`: what a server does with what arrives; `database`, `interpreter`, `resp`: its data, Lua 5.1, its protocol.
//! - `servers`, `slots`, `member`: several servers as a cluster, and which of them keeps what.
//! - `undone`: what must not be in a lock any more.
//! - `wire`, `transport`: the connections, as TCP has them; `end`: the client's end of one.

mod database;
mod end;
mod interpreter;
mod member;
mod observed;
mod resp;
mod scan;
mod server;
mod servers;
mod slots;
mod transport;
mod undone;
mod wire;

pub use observed::Observed;
pub use server::{Mistake, Server};
pub use servers::Servers;
pub use transport::Dialer;
