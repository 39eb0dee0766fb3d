//! `cargo xtask fuzz`: builds the fuzz targets of `fuzz/` and runs them side by side for a given
//! time each.
//!
//! A target starts from the inputs in `fuzz/corpus-seed/TARGET` and from those that earlier runs
//! found, which are below the target directory. `--minimise` selects from both the inputs that the
//! repository keeps.

mod libfuzzer;
mod minimise;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use hoistway_units::figures;
use hoistway_workspace::{cargo, programs, repository};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use self::libfuzzer::Statistics;
use crate::processor::Cpu;

/// The longest time that one input may take, in s; a longer one is a finding.
const INPUT_SECONDS_MAX: u32 = 120;
/// The options of cargo-fuzz: optimised, with debug assertions and overflow checks, and without a
/// sanitizer.
const BUILD: [&str; 3] = ["-s", "none", "-O"];

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Minutes that each target runs
    #[arg(long, default_value_t = 30.0, value_parser = minutes, value_name = "N")]
    minutes: f64,
    /// Targets that run at the same time [default: the number of cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), value_name = "N")]
    jobs: Option<u16>,
    /// Run only these targets, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    targets: Vec<String>,
    /// Use the programs that an earlier run has built, although the sources may have changed
    #[arg(long)]
    no_build: bool,
    /// Run no fuzzer, but replace the inputs in fuzz/corpus-seed with a minimal set that covers
    /// what they and the inputs found by earlier runs cover
    #[arg(long, conflicts_with_all = ["minutes"])]
    minimise: bool,
}

/// Parses a number of minutes.
fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    // libFuzzer counts whole seconds, and 0 stands for no limit.
    if (1.0 / 60.0..=1e6).contains(&minutes) { Ok(minutes) } else { Err("must be from 0.02 to 1,000,000".to_owned()) }
}

/// Builds the targets and runs or minimises them.
pub fn run(options: &Options) -> Result<()> {
    let targets = select(&declared(&fs::read_to_string(fuzz_directory().join("Cargo.toml"))?)?, &options.targets)?;
    let fuzzers = Fuzzers {
        programs: programs(&targets, !options.no_build)?,
        directory: cargo::target_directory()?.join("fuzzing"),
    };
    let jobs = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    if options.minimise {
        return minimise::all(&fuzzers, &targets, jobs);
    }
    let seconds = (options.minutes * 60.0).round() as u64;
    let time = figures::duration(seconds.saturating_mul(1_000_000_000));
    println!("{} targets, {time} each, {jobs} at a time; logs in {}", targets.len(), fuzzers.logs().display());
    let results = side_by_side(&targets, jobs, |target| {
        let result = fuzz(&fuzzers, target, seconds);
        let word = result.as_ref().map_or("not run", |run| if run.finding.is_some() { "FINDING" } else { "ok" });
        println!("{target}: {word}");
        result
    });
    let mut runs = Vec::new();
    for (target, result) in targets.iter().zip(results) {
        runs.push((target.as_str(), result.with_context(|| target.clone())?));
    }
    print!("{}", table(&runs));
    let findings: Vec<String> =
        runs.iter().filter_map(|(target, run)| Some(report(target, run.finding.as_ref()?))).collect();
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} of {} targets with a finding\n{}", findings.len(), targets.len(), findings.join("\n"))
}

/// The built fuzzers and the directory of their corpora and logs.
struct Fuzzers {
    programs: PathBuf,
    directory: PathBuf,
}

impl Fuzzers {
    fn command(&self, target: &str) -> Command {
        Command::new(self.programs.join(target))
    }

    /// The directory of the inputs that runs found.
    fn corpus(&self, target: &str) -> PathBuf {
        self.directory.join("corpus").join(target)
    }

    fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    fn log(&self, target: &str) -> PathBuf {
        self.logs().join(format!("{target}.log"))
    }
}

/// The run of a target.
struct Run {
    statistics: Statistics,
    cpu_s: f64,
    finding: Option<Finding>,
}

/// A failed run.
struct Finding {
    /// How the program ended.
    status: String,
    /// The file of the input, if libFuzzer wrote one.
    input: Option<PathBuf>,
    log: PathBuf,
}

/// Runs a target until its time is over or it fails.
fn fuzz(fuzzers: &Fuzzers, target: &str, seconds: u64) -> Result<Run> {
    let artifacts = fuzz_directory().join("artifacts").join(target);
    let (corpus, log) = (fuzzers.corpus(target), fuzzers.log(target));
    for directory in [&artifacts, &corpus, &fuzzers.logs()] {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let mut command = fuzzers.command(target);
    command
        .args([format!("-max_total_time={seconds}"), format!("-timeout={INPUT_SECONDS_MAX}")])
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .args(Some(seeds(target)).filter(|seeds| seeds.is_dir()));
    let (status, cpu_s) = run_logged(&mut command, &log)?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let finding = (!status.success()).then(|| Finding {
        status: status.to_string(),
        input: libfuzzer::failing_input(&text).map(PathBuf::from),
        log,
    });
    Ok(Run { statistics: Statistics::of(&text), cpu_s, finding })
}

/// Runs a program with its output in a file. Returns its exit status and its CPU time in s.
fn run_logged(command: &mut Command, log: &Path) -> Result<(std::process::ExitStatus, f64)> {
    let file = fs::File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    // Its times can be read as long as its end is not collected.
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let cpu_s = Cpu::of(child.id())?.since(Cpu::default());
    Ok((child.wait()?, cpu_s))
}

/// Formats the results of all targets.
fn table(runs: &[(&str, Run)]) -> String {
    let mut table =
        "| target | runs | edges covered | new inputs | CPU time | findings |\n|---|---|---|---|---|---|\n".to_owned();
    for (target, run) in runs {
        let Statistics { runs, edges, new_inputs } = run.statistics;
        let cells = [runs, edges, new_inputs].map(|count| count.map_or_else(|| "unknown".to_owned(), figures::grouped));
        let findings = u8::from(run.finding.is_some());
        table.push_str(&format!("| `{target}` | {} | {:.0} s | {findings} |\n", cells.join(" | "), run.cpu_s));
    }
    table
}

/// Formats a finding with the command that repeats it.
fn report(target: &str, finding: &Finding) -> String {
    let repeat = finding.input.as_ref().map_or_else(
        || "  no input was written".to_owned(),
        |input| {
            let input = input.strip_prefix(repository::root()).unwrap_or(input);
            format!("  repeat it: cargo +nightly fuzz run {} {target} {}", BUILD.join(" "), input.display())
        },
    );
    format!("{target}: {}\n  output: {}\n{repeat}", finding.status, finding.log.display())
}

/// Builds targets if requested, and returns the directory of their programs.
fn programs(targets: &[String], builds: bool) -> Result<PathBuf> {
    let printed = programs::output(nightly().args(["rustc", "-vV"]).stdin(Stdio::null()))
        .context("a nightly compiler is needed: rustup toolchain install nightly")?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    if cargo::find_tool("cargo-fuzz").is_none() {
        bail!("cargo-fuzz is missing: cargo install cargo-fuzz");
    }
    if builds {
        let mut command = nightly();
        command.args(["cargo", "fuzz", "build"]).args(BUILD);
        if let [target] = targets {
            command.arg(target);
        }
        programs::run(&mut command)?;
    }
    let manifest = fuzz_directory().join("Cargo.toml");
    Ok(cargo::target_directory_of(&manifest)?.join(host).join("release"))
}

/// A command of the nightly toolchain, started in the root of the workspace.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    // Cargo sets the variable for this program, and cargo-fuzz would start that cargo.
    command.args(["run", "nightly"]).env_remove("CARGO").current_dir(repository::root());
    command
}

/// Returns the names of the targets that a manifest declares.
fn declared(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("fuzz/Cargo.toml")?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).context("fuzz/Cargo.toml has no [[bin]]")?;
    let name = |program: &toml::Value| Some(program.get("name")?.as_str()?.to_owned());
    programs.iter().map(|program| name(program).context("fuzz/Cargo.toml: a [[bin]] without a name")).collect()
}

/// Returns the requested targets, or all if none is requested.
fn select(declared: &[String], requested: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = requested.iter().find(|name| !declared.contains(name)) {
        bail!("there is no fuzz target {unknown:?}; there are {}", declared.join(", "));
    }
    let is_selected = |name: &&String| requested.is_empty() || requested.contains(name);
    Ok(declared.iter().filter(is_selected).cloned().collect())
}

/// Calls a function for each target, in several threads, and returns the results in the order of
/// the targets.
fn side_by_side<T: Send>(targets: &[String], jobs: usize, work: impl Fn(&str) -> T + Sync) -> Vec<T> {
    let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..targets.len()).collect());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(targets.len()) {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no thread panics with the lock").pop_front();
                    let Some((index, target)) = next.and_then(|index| Some((index, targets.get(index)?))) else {
                        break;
                    };
                    let result = work(target);
                    done.lock().expect("no thread panics with the lock").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics with the lock");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn fuzz_directory() -> PathBuf {
    repository::root().join("fuzz")
}

/// The directory of the inputs of a target that the repository keeps.
fn seeds(target: &str) -> PathBuf {
    fuzz_directory().join("corpus-seed").join(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest_and_a_wrong_name_is_refused_with_the_right_ones() {
        let declared = declared("[[bin]]\nname = \"one\"\n[[bin]]\nname = \"two\"\n").expect("a good manifest");
        assert_eq!(select(&declared, &[]).expect("all"), ["one", "two"]);
        assert_eq!(select(&declared, &["two".to_owned()]).expect("one"), ["two"]);
        let error = select(&declared, &["three".to_owned()]).expect_err("unknown").to_string();
        assert_eq!(error, "there is no fuzz target \"three\"; there are one, two");
    }

    #[test]
    fn every_target_has_inputs_in_the_repository_and_every_directory_of_inputs_a_target() {
        let manifest = fs::read_to_string(fuzz_directory().join("Cargo.toml")).expect("it is there");
        let mut targets = declared(&manifest).expect("a good manifest");
        targets.sort();
        let entries = fs::read_dir(fuzz_directory().join("corpus-seed")).expect("it is there");
        let mut kept: Vec<String> =
            entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        kept.sort();
        assert_eq!(kept, targets);
    }

    #[test]
    fn results_are_in_the_order_of_the_targets() {
        let targets: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(side_by_side(&targets, 3, str::to_owned), targets);
    }

    #[test]
    fn a_program_that_fails_is_reported_with_its_status_and_cpu_time() {
        let log = std::env::temp_dir().join(format!("hoistway-fuzz-{}.log", std::process::id()));
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo out; exit 77";
        let (status, cpu_s) = run_logged(Command::new("sh").args(["-c", script]), &log).expect("it runs");
        let text = fs::read_to_string(&log).expect("the log");
        fs::remove_file(&log).expect("the log");
        assert_eq!((status.code(), text.as_str()), (Some(77), "out\n"));
        assert!(cpu_s > 0.0);
        let finding = Finding { status: status.to_string(), input: Some("crash-1".into()), log: "log".into() };
        let report = report("one", &finding);
        assert!(report.contains("77") && report.contains("fuzz run -s none -O one crash-1"), "{report}");
    }

    #[test]
    fn a_number_of_minutes_below_a_second_is_refused() {
        assert_eq!(minutes("0.5"), Ok(0.5));
        assert!(minutes("0").is_err() && minutes("-3").is_err() && minutes("NaN").is_err());
    }
}
