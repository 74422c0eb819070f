//! Runtimes: guards outside of them, and the end of one in which the client worked.

mod ends;
mod guards;
mod leaves_nothing;
