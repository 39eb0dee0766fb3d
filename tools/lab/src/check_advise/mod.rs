//! `cargo xtask check-advise`: compares the advice of `hoistway advise` with the predictions of
//! `trace whatif` and with real runs on the emulated drive: docs/advise-checked.md.

mod case;
mod loops;
mod page;
mod runs;

use anyhow::{Context, Result, bail};
use hoistway_workspace::programs;

use crate::whatif;
use case::CASES;

/// The name of the part without measurements.
const LOOPS: &str = "loop device";

/// Options of `cargo xtask check-advise`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Seconds of a real run
    #[arg(long, default_value_t = 15, value_name = "S")]
    seconds: u64,
    /// Check only the cases with this text in their names
    #[arg(long, value_name = "CASE", conflicts_with = "write")]
    only: Option<String>,
    /// Write docs/advise-checked.md instead of printing the tables
    #[arg(long)]
    write: bool,
}

/// Advises, predicts and measures. Prints the tables, or writes docs/advise-checked.md.
pub fn run(options: &Options) -> Result<()> {
    let (seconds, only) = (options.seconds, options.only.as_deref());
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    let cases: Vec<_> = CASES.iter().filter(|case| wanted(case.name)).collect();
    let names = || CASES.iter().map(|case| case.name).chain([LOOPS]).collect::<Vec<_>>().join("; ");
    if cases.is_empty() && !wanted(LOOPS) {
        bail!("--only `{}`: no case has this text in its name; the names are {}", only.unwrap_or_default(), names());
    }
    if programs::find("fio").is_none() {
        bail!("fio is not installed: one of the cases needs it");
    }
    let programs = whatif::programs(true)?;
    let folder = std::env::temp_dir().join(format!("hoistway-check-advise-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let outcomes: Result<Vec<_>> =
        cases.into_iter().map(|case| runs::outcome(&programs, case, seconds, &folder)).collect();
    let loops = if wanted(LOOPS) { loops::rows(&programs, &folder) } else { Ok(None) };
    let _ = std::fs::remove_dir_all(&folder);
    let (outcomes, loops) = (outcomes?, loops?);
    let mut text = page::text(&outcomes, seconds);
    if wanted(LOOPS) {
        loops::section(&mut text, loops.as_deref());
    }
    match options.write {
        true => page::write(&text),
        false => {
            println!("{text}");
            Ok(())
        }
    }
}
