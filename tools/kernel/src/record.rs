//! `cargo xtask kernel record`: recorded runs of all elevators in a guest, replayed in user space.

use anyhow::{Result, bail};

use hoistway_vm::architecture;

use super::plans::{self, Choice};
use super::test::Session;
use super::{Selection, build, recordings};

/// Options of `cargo xtask kernel record`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The number of runs; they use all elevators in turn
    #[arg(long, value_name = "N", default_value_t = 216)]
    runs: u64,
    /// The seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Records the runs and replays them. The recordings stay in `target/kernel/recordings`.
pub fn run(options: &Options) -> Result<()> {
    super::test::require_programs(architecture::BUILD, false, true)?;
    let session = Session::new("record", 768, "")?;
    let mut failed = Vec::new();
    for fetched in super::present(&options.selection.kernels()?, session.folder())? {
        let name = fetched.kernel.name;
        println!("{name}: {}", fetched.release);
        let built = build::build(&fetched, session.folder())?;
        let subject = plans::all();
        let elevators = subject.elevators.clone();
        let choice = Choice { subject: Some(subject), elevators, full: true, seed: options.seed };
        let boot = session.boot(&fetched, Some(&built.file), plans::record(&choice, options.runs), true)?;
        let directory = session.folder().join("recordings").join(name);
        match recordings::replay(&boot.transfer, &directory) {
            Ok(Some(replayed)) if boot.failures.is_empty() => {
                let known = replayed.elevators();
                if let Some(missing) = plans::ALL.iter().find(|name| !known.contains(**name)) {
                    bail!("no recording of {missing}");
                }
                println!("{name}: {}", replayed.line());
            }
            replayed => {
                // After a hang the recording that is not complete shows what the elevator waited
                // for.
                let error = replayed.err().map_or_else(String::new, |error| format!("\n{error:#}"));
                println!("{name}: FAILED: {}{error}", boot.failures.join("\n"));
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed on {}", failed.join(", ")) }
}
