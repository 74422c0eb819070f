//! The in-memory engine, asked by the suite.

use ylock_core::testkit::MemoryHarness;

ylock_core::conformance_tests!(MemoryHarness::new());
