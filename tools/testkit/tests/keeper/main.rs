//! The keeper, asked through the facade over engines that fail, wait, or let something happen in the middle of a call.
//!
//! One program: each mutant of the keeper would otherwise be linked into as many as there are files.

mod acquire;
mod at_once;
mod attendance;
mod caller_drives;
mod counting;
mod events;
mod failures;
mod foreign;
mod hand_over;
mod joining;
mod lapse;
mod layers;
mod lease;
mod listing;
mod many;
mod max_hold;
mod once_per;
mod order;
mod outages;
mod paused_time;
mod races;
mod release;
mod renewals;
mod runtimes;
mod self_wait;
mod semaphores;
mod sets;
mod shown;
mod spans;
mod support;
mod throttle;
mod tries;
mod unread;
mod wakers;
