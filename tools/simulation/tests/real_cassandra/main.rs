//! A simulated node of Cassandra and a real one get the same operations in the same seconds, and answer alike.
//!
//! One replica: what a cluster makes of cells does not depend then on which replica was late. Tables of their own, so that it is the test
//! that says whether they are compacted.

mod comparison;
mod operations;
mod places;
mod purge;
mod sides;
mod time;
