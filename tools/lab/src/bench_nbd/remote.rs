//! The cost of a server in front of another: the same load on nbdkit, and on hoistway over nbdkit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::load::Load;
use super::servers::{Bench, Server};
use super::transport::{Medians, Workload, measure};
use hoistway_workspace::programs::Background;

/// The longest time until nbdkit opens its socket.
const START_MAX: Duration = Duration::from_secs(10);

/// The server that is measured behind hoistway, and alone.
pub const DIRECT: Server = Server::NbdkitFile;
/// The servers in front of it: with the default number of connections, and with one.
pub const IN_FRONT: [Server; 2] =
    [Server::HoistwayRemote { connections: 4 }, Server::HoistwayRemote { connections: 1 }];

/// Runs all loads on nbdkit, and on hoistway over another nbdkit with the same file.
pub fn run(bench: &Bench, seconds: f64, rounds: u32) -> Result<Vec<(Workload, Medians)>> {
    let _behind = start(&bench.remote_socket(), &bench.image)?;
    let reads = |depth| Load::random_reads(depth, seconds);
    let large = |pattern| Load { pattern, block: "1m", ..reads(8) };
    let row = |title, in_bytes, load| {
        let servers = [&[DIRECT][..], &IN_FRONT].concat();
        Workload { title, in_bytes, load, servers }
    };
    let workloads = [
        row("4 KiB random read, QD1", false, reads(1)),
        row("4 KiB random read, QD32", false, reads(32)),
        row("1 MiB sequential read, QD8", true, large("read")),
        row("1 MiB sequential write, QD8", true, large("write")),
    ];
    workloads.into_iter().map(|workload| measure(&workload, bench, rounds).map(|medians| (workload, medians))).collect()
}

/// Starts the nbdkit behind hoistway.
fn start(socket: &Path, image: &Path) -> Result<Background> {
    let mut command = Command::new("nbdkit");
    command.args(["-f", "-U"]).arg(socket).arg("file").arg(image).stdout(Stdio::null()).stderr(Stdio::null());
    let behind = Background(command.spawn().context("nbdkit cannot be started")?);
    let began = Instant::now();
    while !socket.exists() {
        if began.elapsed() > START_MAX {
            bail!("nbdkit does not listen on {}", socket.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(behind)
}
