//! `cargo xtask crash-test`: the real server or mount, killed under load.

use std::path::PathBuf;

use anyhow::{Result, bail};
use hoistway_workspace::{cargo, programs};

/// The package whose examples run the tests.
const PACKAGE: [&str; 2] = ["-p", "hoistway-simulation"];

/// Options of `cargo xtask crash-test`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The program that is killed: the NBD server, an nbdkit behind it, or the mount (as root)
    #[arg(long, value_enum, default_value_t = Subject::Server, value_name = "PROGRAM")]
    of: Subject,
    /// The programs that change files through the mount: clients of the test, PostgreSQL, or SQLite
    /// with a log and with a rollback journal, each with all rounds
    #[arg(long, value_enum, default_value_t = Clients::Files, value_name = "PROGRAMS")]
    clients: Clients,
    /// Number of crashes, after those on disks with planted faults
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
pub fn run(options: &Options) -> Result<()> {
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
    let hoistway = options.hoistway.clone().map_or_else(cargo::packaged, Ok)?;
    let mut command = cargo::command();
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
    programs::run(&mut command)
}
