//! The tables, and the functions on the server, as text: what `connect` runs where they are missing, and what an administrator runs where clients may not.
//!
//! Not covered by semver.

/// The version of tables and functions. Clients of another version are refused: of two versions each would overwrite what the other one relies on.
pub const VERSION: i32 = 5;

/// The code with which functions refuse a transaction of another isolation than READ COMMITTED.
pub(crate) const WRONG_ISOLATION: &str = "YL001";

/// The namespace in the texts.
const NAMESPACE: &str = "ylock.";

/// The functions that clients and programs call, in the rights of their owner. All others are for these only.
const CALLED: [&str; 15] = [
    "acquire",
    "release",
    "renew",
    "renew_many",
    "inspect",
    "keys",
    "revoke",
    "last_run",
    "store_run",
    "sweep",
    "try_lock_in",
    "lock_in",
    "assert_holder",
    "fence",
    "version",
];

const TEXTS: [&str; 12] = [
    include_str!("tables.sql"),
    include_str!("lock.sql"),
    include_str!("queue.sql"),
    include_str!("turns.sql"),
    include_str!("acquire.sql"),
    include_str!("release.sql"),
    include_str!("renew.sql"),
    include_str!("inspect.sql"),
    include_str!("revoke.sql"),
    include_str!("runs.sql"),
    include_str!("sweep.sql"),
    include_str!("transaction.sql"),
];

/// Returns the statements that make all of it in a namespace, which is a schema of PostgreSQL.
pub fn layout(namespace: &str) -> String {
    let mut text = format!("create schema if not exists {};\n\n", quoted(namespace));
    for one in TEXTS {
        text.push_str(one);
        text.push('\n');
    }
    text.push_str(&format!(
        "create function ylock.version() returns int language sql stable security definer set search_path = pg_catalog, pg_temp as $$\n  \
           select version from ylock.layout\n$$;\n\
         insert into ylock.layout (version) values ({VERSION});\n\n",
    ));
    // One after the other: there may be functions of other programs in the schema.
    for name in made() {
        text.push_str(&format!("revoke all on function ylock.{name} from public;\n"));
    }
    for name in CALLED {
        text.push_str(&format!("grant execute on function ylock.{name} to public;\n"));
    }
    text.replace(NAMESPACE, &format!("{}.", quoted(namespace)))
}

/// Returns the names of all functions that are made.
fn made() -> impl Iterator<Item = &'static str> {
    let of_one = |text: &'static str| text.split("create function ylock.").skip(1);
    let names = TEXTS.into_iter().flat_map(of_one).filter_map(|rest| rest.split('(').next());
    names.chain(["version"])
}

/// Returns a name as SQL has it.
pub(crate) fn quoted(namespace: &str) -> String {
    format!("\"{}\"", namespace.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_the_namespace() {
        let text = layout("shop");
        assert!(!text.contains("ylock."), "{text}");
        assert!(
            text.contains("create table \"shop\".lock (")
                && text.contains("create schema if not exists \"shop\";")
        );
    }

    /// A function with the rights of its owner must not look for tables and operators where its caller says.
    #[test]
    fn what_runs_with_the_rights_of_its_owner_says_where_names_are_looked_for() {
        for text in TEXTS {
            let definers = text.matches("security definer").count();
            let paths = text.matches("security definer set search_path = pg_catalog, pg_temp").count();
            assert_eq!(definers, paths, "{text}");
        }
    }
}
