//! A caller that talks to the store itself.

mod ends;
mod schedules;
mod watched;
