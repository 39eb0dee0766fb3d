//! Simulated runs of the server, and the crash tests of the real server and mount.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::server;
use crate::tools::{self, cargo};

/// The package whose examples run the simulations.
const PACKAGE: [&str; 2] = ["-p", "hoistway-simulation"];

/// Arguments that are passed on to the program.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Options of the program; `-- --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Runs simulations, built with optimisation and with all checks of a debug build.
pub fn worlds(options: &Options) -> Result<()> {
    let example = ["run", "--quiet", "--profile", "checked", "--example", "worlds"];
    tools::run(cargo().args(example).args(PACKAGE).arg("--").args(&options.arguments))
}

/// Runs 250 simulations of the server and 200 of the mount in the build of the tests, in less than
/// a minute.
pub fn some_worlds() -> Result<()> {
    let program = tools::built(&["--example", "worlds"])?.join("examples/worlds");
    tools::run(Command::new(&program).args(["--seeds", "250"]))?;
    tools::run(Command::new(program).args(["--of", "mount", "--seeds", "200"]))
}

/// Options of `cargo xtask crash-test`.
#[derive(clap::Args, Debug)]
pub struct CrashOptions {
    /// The program that is killed: the NBD server, an nbdkit behind it, or the mount (as root)
    #[arg(long, value_enum, default_value_t = Subject::Server, value_name = "PROGRAM")]
    of: Subject,
    /// The programs that change files through the mount: clients of the test, PostgreSQL, or SQLite
    /// with a log and with a rollback journal, each with all rounds
    #[arg(long, value_enum, default_value_t = Clients::Files, value_name = "PROGRAMS")]
    clients: Clients,
    /// Crashes after those over disks with planted faults
    #[arg(long, default_value_t = 200, value_name = "N")]
    rounds: u64,
    /// The seed of all random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The engine of the server
    #[arg(long, value_parser = ["auto", "uring", "threads"], value_name = "ENGINE")]
    engine: Option<String>,
    /// The program to run, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
}

/// A program that the crash test kills.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Server,
    Remote,
    Mount,
}

/// The programs that change files through a mount.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    Files,
    Postgres,
    Sqlite,
}

/// Kills the real server or mount under load and checks the data that it had acknowledged.
pub fn crash_test(options: &CrashOptions) -> Result<()> {
    if options.of == Subject::Mount && options.engine.is_some() {
        bail!("--engine is an option of the server: the mount has none");
    }
    let (program, clients) = match (options.of, options.clients) {
        (Subject::Server | Subject::Remote, Clients::Files) => ("crash_test", None),
        (Subject::Mount, Clients::Files) => ("crash_test_mount", None),
        (Subject::Mount, Clients::Postgres) => ("crash_test_databases", Some("postgres")),
        (Subject::Mount, Clients::Sqlite) => ("crash_test_databases", Some("sqlite")),
        (Subject::Server | Subject::Remote, _) => bail!("--clients is an option of the mount: add --of mount"),
    };
    let hoistway = options.hoistway.clone().map_or_else(server::build, Ok)?;
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "checked", "--example", program]).args(PACKAGE);
    command.args(["--", "--hoistway"]).arg(std::path::absolute(hoistway)?);
    command.args(["--rounds", &options.rounds.to_string(), "--seed", &options.seed.to_string()]);
    if let Some(engine) = &options.engine {
        command.args(["--engine", engine]);
    }
    if options.of == Subject::Remote {
        command.args(["--remote", "nbdkit"]);
    }
    if let Some(clients) = clients {
        command.args(["--clients", clients]);
    }
    tools::run(&mut command)
}
