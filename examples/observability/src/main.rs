//! `cargo run -p ylock-observability -- files`

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let n = ylock_observability::files::write(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    println!("{n} files");
    Ok(())
}
