//! The cost of listing a million files, compared with `find` and `sort`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;

use super::timed;
use super::{Bench, Section};
use crate::emulated::Mounted;
use crate::goals::Goal;

/// Files in a directory.
const FOLDER_FILES: u64 = 1000;
/// Inodes of an ext4 in addition to those of the files: directories, and those that mkfs creates.
const MORE_INODES: u64 = 10_000;

/// Compares `hoistway order` with `find` and `sort`, with warm caches.
pub fn measure(bench: &Bench) -> Result<Section> {
    let image = image(bench)?;
    let mounted = Mounted::new(&image, &bench.folder.join("mnt"))?;
    let hoistway = bench.hoistway.display().to_string();
    let programs = [
        ("find and sort", "bash -c \"find tree -printf '%i %p\\n' | sort -n\"".to_owned()),
        ("hoistway order", format!("{hoistway} order tree")),
        ("hoistway order, by inode", format!("{hoistway} order --by inode tree")),
    ];
    let words: Vec<&str> = programs.iter().map(|(_, command)| command.as_str()).collect();
    let found = timed::interleaved(&words, &mounted.at, bench.rounds, || Ok(()))?;
    let mut text = format!(
        "```console\n$ cargo xtask bench-order --only list\n```\n\n{} files of one block in directories of {FOLDER_FILES}, warm cache; medians of {} rounds.\n\n\
         | program | wall s | CPU s | user | system |\n|---|---|---|---|---|\n",
        bench.files, bench.rounds
    );
    for ((_, command), times) in programs.iter().zip(&found) {
        let shown = command.replace(&hoistway, "hoistway");
        let _ = writeln!(
            text,
            "| `{shown}` | {:.2} | {:.2} | {:.2} | {:.2} |",
            times.wall,
            times.cpu(),
            times.user,
            times.system
        );
    }
    let goal = |what: &str, figure: fn(&timed::Times) -> f64| match &found[..] {
        [find, ours, ..] => {
            let (find, ours) = (figure(find), figure(ours));
            let text = format!("listing, warm: {what} <= twice that of find and sort");
            Goal::found(&text, format!("{ours:.2} : {find:.2} s = {:.2}", ours / find), ours <= 2.0 * find)
        }
        _ => Goal::not_measured(what, "no program was run"),
    };
    let goals = vec![goal("CPU time", |times| times.cpu()), goal("time", |times| times.wall)];
    Ok(Section { text, goals })
}

/// Creates an image of an ext4 with this number of files of one block each.
fn image(bench: &Bench) -> Result<std::path::PathBuf> {
    let image = bench.folder.join(format!("list-written-{}.img", bench.files));
    if image.exists() {
        return Ok(image);
    }
    let unfinished = bench.folder.join("unfinished.img");
    let bytes = bench.files * 6 * 1024 + (1 << 30);
    fs::File::create(&unfinished)?.set_len(bytes).with_context(|| unfinished.display().to_string())?;
    let inodes = (bench.files + bench.files / FOLDER_FILES + MORE_INODES).to_string();
    programs::run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", "-N", &inodes]).arg(&unfinished))?;
    let at = bench.folder.join("mnt");
    fs::create_dir_all(&at)?;
    programs::run(Command::new("mount").args(["-o", "loop,noatime"]).arg(&unfinished).arg(&at))?;
    let filled = fill(&at.join("tree"), bench.files);
    programs::run(Command::new("umount").arg(&at))?;
    filled?;
    fs::rename(&unfinished, &image)?;
    Ok(image)
}

fn fill(tree: &Path, files: u64) -> Result<()> {
    for folder in 0..files.div_ceil(FOLDER_FILES) {
        let folder_path = tree.join(format!("d{folder:05}"));
        fs::create_dir_all(&folder_path)?;
        for file in folder * FOLDER_FILES..files.min((folder + 1) * FOLDER_FILES) {
            fs::write(folder_path.join(format!("f{file:08}")), "x")?;
        }
    }
    Ok(())
}
