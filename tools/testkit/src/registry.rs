//! Cases as values and as tests.

use std::pin::Pin;

use ylock_core::Guarantees;

use super::fixture::Fixture;

/// What a case does. Boxed here, so that the compiler translates the cases once, and not for each engine.
pub type Body = fn(Fixture) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its file.
    pub module: &'static str,
    /// Its function.
    pub name: &'static str,
    /// The part that decides what it checks.
    pub decided_by: DecidedBy,
    /// The guarantees that the engine must declare; otherwise the case is left out.
    pub needs: &'static [Need],
    /// What it does: its function, as a value.
    pub body: Body,
}

/// The part that decides what a case checks. The short run asks a case only of what decides it; the long run asks everything of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "as many as there are parts that decide")]
pub enum DecidedBy {
    /// How the store tells, fails over, orders or spreads its locks: asked of every engine and of every variant of one.
    Store,
    /// The engine, by its contract: asked of every engine.
    Engine,
    /// The keeper or the facade. The one case of its feature that is asked of every engine all the same, to show that the feature works there.
    Smoke,
    /// The keeper or the facade: asked of one engine of each kind.
    Keeper,
}

/// What a harness stands for among all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "as many as there are sets of cases")]
pub enum Role {
    /// The engine of its kind that is asked every case.
    Whole,
    /// Another engine of such a kind.
    Engine,
    /// An engine that is asked already, over servers or with options of another kind.
    Variant,
}

impl Role {
    /// Returns whether the short run asks a case of a harness in this role.
    pub fn includes(self, decided_by: DecidedBy) -> bool {
        match self {
            Self::Whole => true,
            Self::Engine => decided_by != DecidedBy::Keeper,
            Self::Variant => decided_by == DecidedBy::Store,
        }
    }
}

/// A guarantee that a case relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "as many as there are guarantees that cases rely on")]
pub enum Need {
    /// [`Guarantees::fair`]
    Fair,
    /// [`Guarantees::fencing`]
    Fencing,
    /// [`Guarantees::shared_reads`]
    SharedReads,
}

impl Case {
    /// Returns the case of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(module: &str, name: &str) -> Self {
        let found = CASES.iter().find(|case| (case.module, case.name) == (module, name));
        *found.unwrap_or_else(|| panic!("there is no case {module}::{name}"))
    }

    /// Returns the first guarantee that this case needs and the engine does not declare.
    pub fn missing(&self, guarantees: Guarantees) -> Option<&'static str> {
        self.needs.iter().find_map(|need| {
            let (name, declared) = match need {
                Need::Fair => ("fair", guarantees.fair),
                Need::Fencing => ("fencing", guarantees.fencing),
                Need::SharedReads => ("shared_reads", guarantees.shared_reads),
            };
            (!declared).then_some(name)
        })
    }
}

/// Makes one test of one case.
#[doc(hidden)]
#[macro_export]
macro_rules! __one_test {
    ([$(#[$attribute:meta])*] [$harness:expr] $module:ident $name:ident) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            $crate::run_test($harness, $crate::Case::named(stringify!($module), stringify!($name)));
        }
    };
}

/// Makes tests of all cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __all_tests {
    ([$attributes:tt $harness:tt] $($module:ident { $($name:ident $decided_by:ident $needs:tt)* })*) => {
        mod conformance {
            $(mod $module {
                #[allow(unused_imports, reason = "the harness may be named by a full path")]
                use super::super::*;
                $($crate::__one_test! { $attributes $harness $module $name })*
            })*
        }
    };
}

/// Makes one named test of every case, each on a runtime of its own: `conformance::<module>::<case>`.
///
/// The expression makes the [`Harness`](crate::Harness), once per test. Attributes after it are put on
/// each test.
#[macro_export]
macro_rules! conformance_tests {
    ($harness:expr $(, #[$attribute:meta])*) => {
        $crate::__for_all_cases! { [$crate::__all_tests] [[$(#[$attribute])*] [$harness]] }
    };
}

macro_rules! decided {
    (store) => {
        DecidedBy::Store
    };
    (engine) => {
        DecidedBy::Engine
    };
    (smoke) => {
        DecidedBy::Smoke
    };
    (keeper) => {
        DecidedBy::Keeper
    };
}

macro_rules! table {
    ([] $($module:ident { $($name:ident $decided_by:ident [$($need:ident)*])* })*) => {
        &[$($(Case {
            module: stringify!($module),
            name: stringify!($name),
            decided_by: decided!($decided_by),
            needs: &[$(Need::$need),*],
            body: |fixture| Box::pin(crate::cases::$module::$name(fixture)),
        },)*)*]
    };
}

/// All cases.
pub static CASES: &[Case] = crate::__for_all_cases!([table] []);

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! sources {
        ([] $($module:ident { $($name:ident $decided_by:ident $needs:tt)* })*) => {
            [$((stringify!($module), include_str!(concat!("cases/", stringify!($module), ".rs")))),*]
        };
    }

    #[test]
    fn every_function_in_the_files_of_cases_is_listed() {
        let mut written = Vec::new();
        for (module, source) in crate::__for_all_cases!([sources] []) {
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            written.extend(names.map(|rest| (module, rest.split('(').next().unwrap())));
        }
        let listed: Vec<_> = CASES.iter().map(|case| (case.module, case.name)).collect();
        assert_eq!(written, listed, "in the files, and in the list");
    }

    #[test]
    fn every_file_of_cases_is_listed() {
        let files = include_str!("cases/mod.rs").lines().filter_map(|line| line.strip_prefix("pub mod "));
        let mut modules: Vec<_> = CASES.iter().map(|case| case.module).collect();
        modules.dedup();
        assert_eq!(files.map(|file| file.trim_end_matches(';')).collect::<Vec<_>>(), modules);
    }

    /// Each file is about one feature.
    #[test]
    fn the_short_run_asks_each_engine_for_each_feature() {
        let mut modules: Vec<_> = CASES.iter().map(|case| case.module).collect();
        modules.dedup();
        for module in modules {
            let cases: Vec<_> = CASES.iter().filter(|case| case.module == module).collect();
            let asked = cases.iter().any(|case| Role::Engine.includes(case.decided_by));
            assert!(asked, "{module}: no case shows that it works on every engine");
            let smoke = cases.iter().filter(|case| case.decided_by == DecidedBy::Smoke).count();
            assert!(smoke <= 2, "{module}: {smoke} cases are called the one of its feature");
        }
    }

    #[test]
    fn every_case_is_asked_of_what_decides_it() {
        let roles = [Role::Whole, Role::Engine, Role::Variant];
        let asked = |decided_by| roles.map(|role| role.includes(decided_by));
        assert_eq!(asked(DecidedBy::Store), [true, true, true]);
        assert_eq!(asked(DecidedBy::Engine), [true, true, false]);
        assert_eq!(asked(DecidedBy::Smoke), [true, true, false]);
        assert_eq!(asked(DecidedBy::Keeper), [true, false, false]);
    }

    #[test]
    fn a_case_is_left_out_only_by_a_guarantee_that_is_not_declared() {
        let needs = &[Need::Fair, Need::Fencing];
        let decided_by = DecidedBy::Keeper;
        let case = Case { module: "m", name: "n", decided_by, needs, body: |_| unreachable!() };
        assert_eq!(case.missing(crate::ALL_GUARANTEES), None);
        assert_eq!(case.missing(crate::ALL_GUARANTEES.with_fencing(false)), Some("fencing"));
        assert!(CASES.iter().any(|case| case.needs.is_empty()));
    }
}
