//! Finds in the text of a file which rooms, and which drivers of stores, its code uses.

use std::collections::HashMap;

/// The beginning of the unit tests. They are at the end of a file: clippy sees to that.
const UNIT_TESTS: &str = "#[cfg(test)]\nmod tests {";

/// Returns the text up to its unit tests.
pub(super) fn without_unit_tests(text: &str) -> &str {
    text.split(UNIT_TESTS).next().unwrap_or_default()
}

/// Returns the text without its comments, each line where it was. What follows `//` inside a string is lost, too; no path is there.
pub(super) fn without_comments(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Returns the first names of all paths that begin with `crate::`, each with the number of its line.
pub(super) fn first_names(code: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        if !code[..at].ends_with(is_part_of_name) {
            let line = line_of(code, at);
            names.extend(begins(&code[at + root.len()..]).into_iter().map(|name| (line, name)));
        }
    }
    names
}

/// Returns the name that a path begins with; of a group such as `{a::B, c::{D, E}}` that of each path in it.
fn begins(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut depth, mut is_new) = (Vec::new(), 0_u32, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => is_new = true,
            letter if is_new && is_part_of_name(letter) => {
                names.push(name(&group[at..]));
                is_new = false;
            }
            _ => {}
        }
    }
    names
}

/// Returns the rooms of the names that the root of a crate re-exports: code may write `crate::Name` instead of `crate::room::Name`.
pub(super) fn reexported(root: &str) -> HashMap<&str, &str> {
    let statements = root.split(';').filter_map(|statement| statement.trim().rsplit_once("pub use "));
    let paths = statements.filter_map(|(_, path)| path.split_once("::"));
    paths
        .flat_map(|(room, names)| {
            let names = names.split(|letter| !is_part_of_name(letter)).filter(|name| !name.is_empty());
            names.map(move |name| (name, room.trim()))
        })
        .collect()
}

/// Returns the numbers of the lines that name this crate.
pub(super) fn lines_that_name(krate: &str, code: &str) -> Vec<usize> {
    let names = code.match_indices(krate).filter(|(at, _)| {
        let (before, after) = (&code[..*at], &code[at + krate.len()..]);
        // `::redis::Client` begins with the crate, `ylock::redis::RedisEngine` does not.
        let outside = before.strip_suffix("::").unwrap_or(before);
        let is_path = after.starts_with("::") && !outside.ends_with(is_part_of_name);
        let is_import = before.ends_with(" crate ") || before.ends_with("use ");
        is_path || (is_import && !after.starts_with(is_part_of_name))
    });
    names.map(|(at, _)| line_of(code, at)).collect()
}

fn name(path: &str) -> &str {
    path.split(|letter| !is_part_of_name(letter)).next().unwrap_or_default()
}

fn is_part_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_imports_groups_and_code() {
        let code = "use crate::a::B;\nuse crate::{\n    c::{D, E},\n    f,\n};\nfn g() { $crate::h::i(my_crate::j) }";
        assert_eq!(first_names(code), [(1, "a"), (2, "c"), (2, "f"), (6, "h")]);
    }

    #[test]
    fn comments_and_unit_tests_are_left_out() {
        let text = "//! See [`A`](crate::a::A).\nfn b() {} // as crate::c does\nuse crate::d;\n#[cfg(test)]\nmod tests {\n    use crate::e;\n}";
        assert_eq!(first_names(&without_comments(without_unit_tests(text))), [(3, "d")]);
    }

    #[test]
    fn the_root_tells_the_rooms_of_its_names() {
        let root = "mod a;\npub use a::B;\n#[cfg(x)]\npub use c::{\n    D, e::F,\n};";
        let rooms = reexported(root);
        assert_eq!((rooms["B"], rooms["D"], rooms["F"]), ("a", "c", "c"));
    }

    #[test]
    fn a_crate_is_told_from_a_module_of_the_same_name() {
        let code = "use redis::Client;\nuse ylock::redis::RedisEngine;\nlet a = ylock_engine_redis::b;\nlet c = ::redis::d;\nuse redis as e;\nuse redis_like::f;";
        assert_eq!(lines_that_name("redis", code), [1, 4, 5]);
    }
}
