//! A service whose locks are configured by one file for each environment, which a variable picks.
//!
//! ```text
//! cargo run -p ylock --features serde --example config                                  # dev
//! SHOP_ENVIRONMENT=test cargo run -p ylock --features serde --example config
//! SHOP_ENVIRONMENT=dev SHOP_LOCKS_LEASE=3s cargo run -p ylock --features serde --example config
//! SHOP_ENVIRONMENT=production SHOP_LOCKS_PASSWORD=… cargo run -p ylock --features serde,redis --example config
//! ```

mod settings;

use std::error::Error;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let environment = std::env::var("SHOP_ENVIRONMENT").unwrap_or_else(|_| "dev".to_owned());
    match serve(&environment).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{environment}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(environment: &str) -> Result<(), Box<dyn Error>> {
    let settings = settings::read(environment)?;
    let ylock = ylock::connect_with(&settings.locks).await?;
    println!("{environment}: listens at {}, locks by {ylock:?}", settings.listen);

    let worked = ylock.locks("orders").write("4711").run(|lease| async move { lease.is_valid() }).await?;
    println!("order 4711 was worked on under its lock: {worked}");
    ylock.close().await;
    Ok(())
}
