//! Mistakes in what is built on locks.

use ylock_simulation::{Built, Setting, Subject};

use super::must_find_everywhere;

macro_rules! broken {
    ($($test:ident: $of:ident $mistake:ident, $wrong:literal, at $at:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let setting = || Setting { of: Subject::$of, built: Built::$mistake, ..Setting::default() };
                must_find_everywhere(stringify!($test), $wrong, $at, setting);
            }
        )*
    };
}

broken! {
    permits_are_counted_only_before_the_own_place: KeeperOverMemory CountsThoseBefore, "permits", at 0;
    permits_are_counted_only_before_the_own_place_at_once: KeeperAtOnce CountsThoseBefore, "permits", at 0;
    the_number_of_permits_is_not_compared: KeeperOverMemory CountsAlone, "counts on", at 0;
    a_leader_is_told_late: KeeperOverMemory LeadsByLooks, "two valid holders of lead", at 28;
    a_leader_is_told_late_at_once: KeeperAtOnce LeadsByLooks, "two valid holders of lead", at 3;
    a_period_is_counted_by_the_wrong_clock: KeeperOverMemory CountsFromStart, "is run twice", at 0;
}
