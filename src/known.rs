//! The options that a URL may have.

use ylock_core::Result;
use ylock_core::options::Definition;
use ylock_core::url::EngineUrl;

/// The options of the client itself, which no engine sees.
const OF_CLIENTS: [Definition; 2] = [
    Definition { name: "client", default: "", doc: "The name of the client." },
    Definition { name: "metrics", default: "`off`", doc: "Whether the client is measured." },
];

/// Checks the names of all options of a URL before any of them is read: an unknown one is told with the nearest of those that this crate and
/// the engine have.
pub(crate) fn check_names(url: &EngineUrl, engine: &'static str, own: &[Definition]) -> Result<()> {
    let known = [own, &OF_CLIENTS].concat();
    let is_known = |name: &str| known.iter().any(|option| option.name == name);
    url.set_options(&known, |name, _| Ok(is_known(name))).map_err(|error| error.with_engine(engine))
}
