//! Replays decision files and prints a line for each: identical scenarios of all. `-v` also prints
//! where the others first differ and what happened before.
//!
//! `cargo run --release -p hoistway-conform --example conform -- [-v] FILE...`

use std::path::Path;
use std::process::ExitCode;

use hoistway_conform::decisions::replay_file;

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg == "-v");
    if files.is_empty() {
        eprintln!("usage: conform [-v] FILE...");
        return ExitCode::from(2);
    }
    let mut all_identical = true;
    for file in &files {
        match replay_file(Path::new(file), |_| ()) {
            Ok(report) => {
                println!("{} {}/{}", report.file, report.identical, report.total);
                all_identical &= report.identical == report.total;
                for scenario in report.differences.iter().filter(|_| !flags.is_empty()) {
                    println!("  line {} {}: {}", scenario.line, scenario.name, scenario.difference);
                    for event in &scenario.last_events {
                        println!("    {event}");
                    }
                }
            }
            Err(error) => {
                println!("{error}");
                all_identical = false;
            }
        }
    }
    if all_identical { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
