//! A player that reads a file at a constant rate beside four copies, on ext4 on a slow disk.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::{Context, Failure, Verdict};
use crate::device::Queue;
use crate::plan::PlayerSetup;
use crate::player::Played;
use crate::protocol::Counts;
use crate::{Outcome, system};

const MOUNTED: &str = "/tmp/films";
/// The number of copies.
const COPIES: usize = 4;
/// The time in which the copies fill the queue before the player begins.
const WARM_UP: Duration = Duration::from_secs(3);

/// Plays under an elevator. The disk must have the files `film` and `source-0` to `source-3`.
pub fn run(context: &mut Context, setup: &PlayerSetup) -> Verdict {
    // The file system asks for this checksum by name when it is mounted.
    context.modules.insert("crc32c_generic", "")?;
    context.modules.insert("ext4", "")?;
    let Some(disk) = system::disk_with_serial(&setup.serial)? else {
        return Err(Failure::Skipped(format!("the machine has no disk {}", setup.serial)));
    };
    let queue = Queue::new(&disk);
    queue.select(&setup.elevator)?;
    for (name, value) in &setup.tunables {
        system::write(Path::new("/sys/block").join(&disk).join("queue").join(name), value)?;
    }
    system::mount_device(&format!("/dev/{disk}"), "ext4", MOUNTED, true)?;
    let played = play(setup, &disk);
    system::unmount(MOUNTED)?;
    queue.select("none")?;
    let played = played?;
    let counts = [
        ("player_kb_s", played.bytes_per_second / 1000),
        ("player_p99_us", played.p99_us),
        ("player_longest_us", played.longest_us),
        ("rate_kb_s", setup.bytes_per_second / 1000),
    ];
    Ok(Counts::from(counts.map(|(name, figure)| (name.to_owned(), figure))))
}

fn play(setup: &PlayerSetup, disk: &str) -> Outcome<Played> {
    system::drop_caches()?;
    let mut copies = Vec::new();
    for number in 0..COPIES {
        copies.push(start(&["copy", &format!("{MOUNTED}/source-{number}"), &format!("{MOUNTED}/copy-{number}")])?);
    }
    thread::sleep(WARM_UP);
    let seconds = setup.seconds.to_string();
    let rate = setup.bytes_per_second.to_string();
    let player = start(&["play", &format!("{MOUNTED}/film"), &rate, &seconds, &setup.io_class.to_string()])?;
    let mut reserved = Ok(());
    if setup.reserved_bytes_per_second > 0 {
        let text = format!("pid {} {}", player.id(), setup.reserved_bytes_per_second);
        reserved = system::write(format!("/sys/block/{disk}/queue/iosched/reservations"), &text);
    }
    let output = player.wait_with_output().map_err(|error| format!("the player: {error}"))?;
    for copy in &mut copies {
        // One that failed has ended already, and its message is read below.
        let _ = copy.kill();
    }
    for copy in copies {
        let output = copy.wait_with_output().map_err(|error| format!("a copy: {error}"))?;
        if output.status.code().is_some() {
            return Err(format!("a copy ended: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    reserved?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    Played::parse(&printed).ok_or_else(|| {
        format!("the player: {}: {printed}{}", output.status, String::from_utf8_lossy(&output.stderr).trim())
    })
}

fn start(arguments: &[&str]) -> Outcome<Child> {
    let mut command = Command::new("/init");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("cannot start {}: {error}", arguments.join(" ")))
}
