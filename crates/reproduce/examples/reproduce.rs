//! Measures published results and prints the document of `hoistway reproduce --json`: `cargo run
//! --release -p hoistway-reproduce --example reproduce -- ID...`; without ids, all results.

use std::sync::atomic::AtomicBool;

use hoistway_reproduce::{Reproduction, reproduce, select};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids: Vec<String> = std::env::args().skip(1).collect();
    let results = reproduce(&select(&ids)?, &|_progress| {}, &AtomicBool::new(false))?;
    println!("{}", serde_json::to_string_pretty(&Reproduction::new(&results))?);
    Ok(())
}
