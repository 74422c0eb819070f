//! Mistakes in what is built on locks.

use ylock_simulation::{Built, Setting, Subject};

use super::must_find_everywhere;

macro_rules! broken {
    ($($test:ident: $of:ident $mistake:ident, $wrong:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let setting = || Setting { of: Subject::$of, built: Built::$mistake, ..Setting::default() };
                must_find_everywhere(stringify!($test), $wrong, setting);
            }
        )*
    };
}

broken! {
    permits_are_counted_only_before_the_own_place: KeeperOverMemory CountsThoseBefore, "permits";
    permits_are_counted_only_before_the_own_place_at_once: KeeperAtOnce CountsThoseBefore, "permits";
    the_number_of_permits_is_not_compared: KeeperOverMemory CountsAlone, "counts on";
    a_leader_is_told_late: KeeperOverMemory LeadsByLooks, "two valid holders of lead";
    a_leader_is_told_late_at_once: KeeperAtOnce LeadsByLooks, "two valid holders of lead";
    a_period_is_counted_by_the_wrong_clock: KeeperOverMemory CountsFromStart, "is run twice";
}
