//! Prints all paths below a directory in physical disk order:
//! `cargo run -p hoistway-order --example list_directory -- /srv/mail`.

use std::path::PathBuf;

use hoistway_order::{ListOptions, list};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let listing = list(&[root], &ListOptions::default())?;
    for record in listing.records() {
        match record.at {
            Some(offset) => println!("{offset:>16}  {}", record.path),
            None => println!("{:>16}  {}", "-", record.path),
        }
    }
    for error in &listing.errors {
        eprintln!("{error}");
    }
    Ok(())
}
