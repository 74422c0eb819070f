//! The holes of the thesis's algorithm, and of ours before it was right: each test fails without the line that closes it.
//! On a store of one replica and paused time; the three replicas are the simulation's.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod closing;
mod fake;
mod fixture;
mod handing_on;
mod hints;
mod losses;
mod news;
mod observing;
mod own_rows;
mod pausing;
mod post;
mod queueing;
mod renewing;
mod revoking;
mod settling;
mod shown;
mod shown_again;
mod sleeping;
mod tokens;
mod told;
mod waiting;
mod world;
mod writes;
