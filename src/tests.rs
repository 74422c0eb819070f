//! Each engine is in the README, and its options are in their page as they are in the code; and each names its Cargo feature where it is not compiled in.

use ylock_core::options::{Definition, Reach};

use crate::Options;
use crate::connect::{ENGINES, engine_of};

const README: &str = include_str!("../README.md");
const OPTIONS: &str = include_str!("../docs/options.md");

/// Checks that the page of options has a table of exactly these.
fn is_on_the_page(of: &str, options: &[Definition]) {
    let rows = options.iter().map(Definition::markdown).collect::<Vec<_>>().join("\n");
    let table = format!("\n\n| option | default | what it does |\n|---|---|---|\n{rows}\n\n");
    assert!(OPTIONS.contains(&table), "in docs/options.md the table of the options of {of} must be:{table}");
}

#[test]
fn options_of_every_engine() {
    is_on_the_page("every engine", &Options::definitions());
    is_on_the_page("every engine over a network", &Reach::definitions());
}

#[test]
fn options_of_each_engine() {
    let common = Reach::definitions();
    for engine in &ENGINES {
        let scheme = engine.schemes[0].0;
        assert!(README.contains(&format!("| `{scheme}://` |")), "README.md has no row of {scheme}://");
        let options = engine.compiled.iter().flat_map(|compiled| (compiled.options)());
        let own: Vec<_> = options.filter(|option| !common.contains(option)).collect();
        if !own.is_empty() {
            is_on_the_page(scheme, &own);
        }
    }
}

#[test]
fn an_engine_that_is_not_compiled_in_names_its_feature() {
    for engine in ENGINES.iter().filter(|engine| engine.compiled.is_none()) {
        let kind = if engine.has_kinds { "+kind" } else { "" };
        for (scheme, feature) in engine.schemes {
            let complaint = engine_of(&format!("{scheme}{kind}")).unwrap_err().to_string();
            let told = format!("is not compiled in: switch on the Cargo feature {feature:?}");
            assert!(complaint.contains(&told), "{complaint}");
        }
    }
}
