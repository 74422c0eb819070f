//! The mistakes of listings.

use ylock_core::engine::{Engine, KeyPage};
use ylock_core::{Key, Result};

use crate::defect::Defect;

const PAGE: usize = 50;

/// Returns a page as an engine with this mistake would.
pub(crate) async fn keys(
    engine: &dyn Engine,
    defect: Defect,
    group: Option<&str>,
    after: Option<&str>,
) -> Result<KeyPage> {
    let page = match defect {
        Defect::CountsWhatItListed => return counted(engine, group, after).await,
        Defect::ListsByPrefix => engine.keys(None, after).await,
        Defect::ListsAfterAnything => match engine.keys(group, after).await {
            Err(_) => engine.keys(group, None).await,
            page => page,
        },
        _ => engine.keys(group, after).await,
    };
    let mut page = page?;
    match defect {
        Defect::ListsOnePage => page.next = None,
        Defect::ListsByPrefix => {
            page.keys.retain(|key| group.is_none_or(|group| key.group().starts_with(group)))
        }
        Defect::ListsNoLongNames => page.keys.retain(|key| key.name().len() < 255),
        _ => {}
    }
    Ok(page)
}

async fn counted(engine: &dyn Engine, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let listed = match after {
        Some(after) => after.parse().map_err(|_| KeyPage::wrong())?,
        None => 0,
    };
    let mut all = all(engine, group).await?;
    all.sort_unstable();
    let next = (all.len() > listed + PAGE).then(|| (listed + PAGE).to_string());
    Ok(KeyPage::new(all.into_iter().skip(listed).take(PAGE).collect(), next))
}

async fn all(engine: &dyn Engine, group: Option<&str>) -> Result<Vec<Key>> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = engine.keys(group, after.as_deref()).await?;
        all.extend(page.keys);
        after = page.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}
