//! The in-memory engine, asked by the suite.

use ylock_testkit::MemoryHarness;

ylock_testkit::conformance_tests!(MemoryHarness::new());
