//! The arguments of the command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::name::{Named, group_argument};

/// Runs commands under distributed locks, and shows who holds them.
#[derive(Debug, Parser)]
#[command(name = "ylock", version, propagate_version = true, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: of `ylock run` that of the command, or 128 and the number of the signal that ended it; 64 wrong arguments or \
configuration, 69 the store is away, 70 anything else, 73 the lock was lost or held for longer than --max-hold, 75 the lock is not free, 126 and 127 the command cannot be run.";

/// Which store.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    /// The URL of the store, such as redis://host/0 or file:///run/ylock. Otherwise the variable YLOCK_STORE, the
    /// configuration file, or a folder of this user on this host
    #[arg(long, global = true, value_name = "URL", help_heading = "Store")]
    pub(crate) store: Option<String>,
    /// A TOML file with `url`, `password` and options, such as lease = "15s". Otherwise the one
    /// in YLOCK_CONFIG, or ~/.config/ylock.toml, if it is there. The variable YLOCK_PASSWORD wins over its password
    #[arg(long, global = true, value_name = "FILE", help_heading = "Store")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Inspect(InspectArguments),
    List(ListArguments),
    Top(TopArguments),
    Watch(WatchArguments),
    Revoke(RevokeArguments),
    Doctor(DoctorArguments),
    /// Writes the completion of a shell to standard output
    Completions {
        shell: Shell,
    },
    /// Writes the manual page to standard output
    Man,
}

impl Command {
    /// Returns whether everything is to be said as JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Inspect(InspectArguments { json, .. })
            | Self::List(ListArguments { json, .. })
            | Self::Watch(WatchArguments { json, .. })
            | Self::Revoke(RevokeArguments { json, .. })
            | Self::Doctor(DoctorArguments { json }) => *json,
            Self::Run(_) | Self::Top(_) | Self::Completions { .. } | Self::Man => false,
        }
    }
}

/// Runs a command while it holds a lock.
///
/// The lock is given back when the command has ended. If it is lost before that, the command is sent TERM, and KILL after
/// --grace. The same is done to one that takes longer than --max-hold, which keeps the lock until
/// it has ended. TERM, HUP, USR1 and USR2 are passed on to the command, INT, QUIT and TSTP too
/// unless the terminal sends them to it. Outside of the foreground of a terminal it gets a process
/// group of its own, and the whole group gets the signals; in a terminal only the command itself. A
/// signal that `ylock` ignores, as with nohup, stays ignored. If `ylock` is stopped for longer than
/// the lease, the lock is lost.
///
/// The first TERM or INT that is passed on is the command's own affair. The second one is KILL for
/// it, and ends `ylock` within a second, with 128 and the number of the signal. While `ylock` waits
/// for the lock, or gives it back, a signal leaves it five seconds for that, and a second one none.
/// If it could not give the lock back it says for how long the lock may stay held.
///
/// The command finds the group and the name in YLOCK_GROUP and YLOCK_NAME, and in YLOCK_TOKEN the fencing token, where
/// the store has one.
///
/// If `ylock` itself is killed by KILL, the command runs on WITHOUT the lock: with file:// it is free at once, otherwise
/// when its lease is over.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// The lock: its group and its name, as in users/alice
    #[arg(value_name = "GROUP/NAME")]
    pub(crate) lock: Named,
    /// Shares the lock with other readers
    #[arg(long, short, conflicts_with_all = ["permits", "once_per"])]
    pub(crate) read: bool,
    /// Waits for so long, and then fails with exit code 75; 69 if the store was away. For ever without this
    #[arg(long, short, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,
    /// Does not wait: fails with exit code 75 if the lock is not free
    #[arg(long, short = 'n', conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Takes one of N permits of the semaphore of this name instead of the lock
    #[arg(long, value_name = "N", conflicts_with = "once_per")]
    pub(crate) permits: Option<u32>,
    /// Runs the command at most once in each period of this length, counted from 1970 UTC, whichever client asks; otherwise
    /// succeeds without running it
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) once_per: Option<Duration>,
    /// With --once-per: each period begins so much later
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "once_per")]
    pub(crate) offset: Option<Duration>,
    /// With --once-per: runs the command again within the period if it has failed or was ended
    #[arg(long, requires = "once_per")]
    pub(crate) until_done: bool,
    /// Stops the command when it has had the lock for so long, and gives the lock back when it has
    /// ended: exit code 73
    #[arg(long, value_name = "TIME", value_parser = longer_than_zero)]
    pub(crate) max_hold: Option<Duration>,
    /// How long the command may take to end after TERM, when the lock is lost or --max-hold is over
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10s")]
    pub(crate) grace: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Shows who holds a lock, or the permits of a semaphore, and who waits.
#[derive(Args, Debug)]
pub(crate) struct InspectArguments {
    /// The lock or semaphore, as `ylock list` prints it: users/alice, semaphore:jobs/render
    #[arg(value_name = "GROUP/NAME")]
    pub(crate) lock: Named,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the locks and semaphores that are held or waited for.
///
/// What this costs the store differs: Redis walks over all its keys (SCAN), ZooKeeper sends the names of all locks,
/// Cassandra reads the whole table by token ranges, and a folder is read as a whole. Each lock is then looked at by itself.
#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    /// Of this group only
    #[arg(value_parser = group_argument)]
    pub(crate) group: Option<String>,
    /// Stops after so many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Prints JSON, one line per lock
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the locks that are held or waited for on a screen that is kept up to date: the longest waits first.
///
/// Each look costs the store what `ylock list` costs it; the screen says how long the last one took.
#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Of this group only
    #[arg(value_parser = group_argument)]
    pub(crate) group: Option<String>,
    /// The pause between two looks at the store
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "2s")]
    pub(crate) every: Duration,
    /// Reads so many locks per look at most. If there are more, the screen says so, and longer waits may be among those
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}

/// Shows who holds a lock, and each change, until it is interrupted.
#[derive(Args, Debug)]
pub(crate) struct WatchArguments {
    /// The lock or semaphore, as `ylock list` prints it: users/alice, semaphore:jobs/render
    #[arg(value_name = "GROUP/NAME")]
    pub(crate) lock: Named,
    /// The pause between two looks
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "1s")]
    pub(crate) every: Duration,
    /// Prints JSON, one line per change
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes a lock away from its holders, or all permits of a semaphore.
///
/// A holder is told when it renews its lease, a third of the lease later at the latest; the next waiter gets in after that. A holder that
/// does not stop then may work on for a moment while another one holds the lock.
#[derive(Args, Debug)]
pub(crate) struct RevokeArguments {
    /// The lock or semaphore, as `ylock list` prints it: users/alice, semaphore:jobs/render
    #[arg(value_name = "GROUP/NAME")]
    pub(crate) lock: Named,
    /// Only from the holder with this id, as `ylock inspect` shows it
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Prints JSON
    #[arg(long, requires = "yes")]
    pub(crate) json: bool,
}

/// Looks whether the store can be reached and what it promises.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a duration that is longer than zero.
fn longer_than_zero(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("must be longer than zero".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}
