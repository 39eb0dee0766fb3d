//! The cost of archiving: CPU time with warm caches, and time on the machine's own disk with cold
//! caches.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use hoistway_workspace::programs;

use super::image;
use super::timed::{self, Times};
use super::{Bench, Section};
use crate::emulated::Mounted;
use crate::goals::Goal;

/// The compared programs; GNU tar comes first as the reference.
fn commands(bench: &Bench) -> Result<Vec<(&'static str, String)>> {
    if programs::find("bsdtar").is_none() {
        programs::install(&["libarchive-tools"])?;
    }
    Ok(vec![
        ("GNU tar", "tar -cf - tree".to_owned()),
        ("hoistway tar", format!("{} tar -cf - tree", bench.hoistway.display())),
        ("bsdtar", "bsdtar -cf - tree".to_owned()),
    ])
}

/// Measures the CPU time (user and system) of the archiver alone, with warm caches.
pub fn warm(bench: &Bench) -> Result<Section> {
    let commands = commands(bench)?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-order --only cpu\n```\n\nMedians of {} rounds in which the programs alternate. Output goes through `| cat > /dev/null`; the times do not include cat.\n\n\
         | tree | program | CPU s | user | system | wall s |\n|---|---|---|---|---|---|\n",
        bench.rounds
    );
    let mut goals = Vec::new();
    for (name, aged) in [("fresh", false), ("aged", true)] {
        let image = image::of_files(&bench.folder, aged)?;
        let mounted = Mounted::new(&image, &bench.folder.join("mnt"))?;
        let words: Vec<&str> = commands.iter().map(|(_, command)| command.as_str()).collect();
        let found = timed::interleaved(&words, &mounted.at, bench.rounds, || Ok(()))?;
        for ((program, _), Times { wall, user, system }) in commands.iter().zip(&found) {
            let _ =
                writeln!(text, "| {name} | {program} | {:.3} | {user:.3} | {system:.3} | {wall:.3} |", user + system);
        }
        goals.push(against(&format!("{name}, warm: CPU time <= GNU tar's"), &found, Times::cpu, 1.0));
    }
    Ok(Section { text, goals })
}

/// Measures the archivers with cold caches, on the disk of the images.
pub fn cold(bench: &Bench) -> Result<Section> {
    let commands = commands(bench)?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-order --only cold\n```\n\nMedians of {} rounds; each program gets a new mount of the image, on a loop device with direct I/O on the disk of the machine.\n\n\
         | tree | program | wall s | CPU s | reads |\n|---|---|---|---|---|\n",
        bench.rounds
    );
    let mut goals = Vec::new();
    for (name, aged, most) in [("fresh", false, 1.0), ("aged", true, 0.85)] {
        let image = image::of_files(&bench.folder, aged)?;
        let mut found = Vec::new();
        let mut measured = vec![Vec::new(); commands.len()];
        for _ in 0..bench.rounds {
            for ((_, command), measured) in commands.iter().zip(&mut measured) {
                measured.push(once(&image, &bench.folder.join("mnt"), command)?);
            }
        }
        for ((program, _), rounds) in commands.iter().zip(&measured) {
            let times = timed::medians(&rounds.iter().map(|(times, _)| *times).collect::<Vec<_>>());
            let reads = rounds.first().map_or(0, |(_, reads)| *reads);
            let _ = writeln!(text, "| {name} | {program} | {:.2} | {:.2} | {reads} |", times.wall, times.cpu());
            found.push(times);
        }
        let goal = format!("{name}, cold: time <= {most} of GNU tar's");
        goals.push(against(&goal, &found, |times| times.wall, most));
    }
    Ok(Section { text, goals })
}

fn once(image: &Path, at: &Path, command: &str) -> Result<(Times, u64)> {
    let mounted = Mounted::new(image, at)?;
    let (before, _) = mounted.reads()?;
    let times = timed::run(command, &mounted.at)?;
    Ok((times, mounted.reads()?.0 - before))
}

/// The goal that the second program takes at most `most` times the figure of the first.
fn against(text: &str, found: &[Times], figure: fn(&Times) -> f64, most: f64) -> Goal {
    match found {
        [tar, ours, ..] => {
            let (tar, ours) = (figure(tar), figure(ours));
            Goal::found(text, format!("{ours:.3} : {tar:.3} s = {:.2}", ours / tar), ours <= most * tar)
        }
        _ => Goal::not_measured(text, "no program was run"),
    }
}
