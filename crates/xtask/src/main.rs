//! The checks that continuous integration runs, and a person before a commit: `cargo xtask test` runs them all.

#![forbid(unsafe_code)]

mod arrows;
mod bare;
mod bench_mount;
mod bench_nbd;
mod bench_order;
mod check_advise;
mod emulated;
mod goals;
mod laws;
mod pages;
mod parts;
mod picture;
mod processor;
mod proof;
mod repository;
mod server;
mod soak;
mod steps;
mod tables;
mod tidy;
mod tokens;
mod tools;
mod whatif;
mod worlds;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask TASK

tasks:
  test    everything below, and formatting, lints, all tests and the documentation
  proof   the core cannot panic: its optimised object refers to nothing but memcpy and its kin
  laws    the core's other laws: no unsafe, no dependencies, no floats, no dyn, no function pointers; a build for a bare
          machine; the arrows between crates
  tidy    lengths of functions and files, words that do not belong here, links between documents
  pages   the generated parts of docs/conformance.md and docs/drives.md are current; `pages write` writes them, the tables of tunables
          in docs/elevators and docs/reproduced.md with its pictures (which tests of the command check), and `pages write DIR` also
          the part on the whole recordings of decisions, which lie in DIR; `pages picture` writes docs/trace-view.png with Chromium
  bench-nbd  the server beside others, and how it shares: --rounds N, --seconds S, --only cost|sharing|crowd, --write for
          docs/serve-benchmarks.md; fails at the end if a goal is missed or not measured
  bench-order  what disk order is worth, and what archiving costs: --only simulated|real|cpu|cold|list, --rounds N, --folder DIR on the disk that is
          measured, --write for docs/order-benchmarks.md; all but `simulated` need root; fails at the end if a goal is missed or not measured
  bench-mount  what `hoistway mount` costs beside other ways to the same files, and what a reader keeps beside copies: --only cost|cold|writing|sharing,
          --rounds N, --seconds S, --folder DIR on the disk that is measured, --write for docs/mount-benchmarks.md; needs root
  whatif  how good the predictions of `hoistway trace whatif` are: --seeds FROM-TO (111-116), --seconds S (60), --real-seconds S (20; 0: none),
          --write for docs/whatif.md, --from FILE for what `recorded_clients quality` printed; fails at the end if a goal is missed
  check-advise  the advice of `hoistway advise` beside `trace whatif` and real runs on the emulated drive: --seconds S (15), --only CASE (a part
          of its name), --write for docs/advise-checked.md; needs fio with its nbd engine, and root for the loop device
  worlds  the whole server in simulated worlds, from seeds: --seeds N (10,000), --from SEED, --jobs N, -k to go on after a failure;
          --seed SEED plays one, -v tells all of it; --sabotage KIND breaks the engine
  crash-test  kills the real server under load and looks for what it had acknowledged: --rounds N (200), --seed N,
          --engine auto|uring|threads
  soak    the server under clients that check what they get back: --minutes N, --only verify|filesystem|tools|lateness";

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => steps::test(),
        ["proof"] => proof::run(),
        ["laws"] => laws::run(),
        ["tidy"] => tidy::run(),
        ["pages"] => pages::check(),
        ["pages", "write"] => write_pages(None),
        ["pages", "picture"] => picture::write(),
        ["bench-nbd", options @ ..] => bench_nbd::run(options),
        ["bench-mount", options @ ..] => bench_mount::run(options),
        ["bench-order", options @ ..] => bench_order::run(options),
        ["check-advise", options @ ..] => check_advise::run(options),
        ["whatif", options @ ..] => whatif::run(options),
        ["soak", options @ ..] => soak::run(options),
        ["worlds", options @ ..] => worlds::run(options),
        ["crash-test", options @ ..] => worlds::crash_test(options),
        ["pages", "write", recordings] => write_pages(Some(recordings)),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("a task is missing\n{USAGE}"),
        [unknown, ..] => bail!("{unknown:?} is no task, or has arguments too many\n{USAGE}"),
    }
}

/// All that is generated, with the part on whole recordings if a folder of them is named.
fn write_pages(recordings: Option<&str>) -> Result<()> {
    pages::write(recordings)?;
    tables::write()?;
    pages::write_reproduced()
}
