//! The same system calls on a directory and on a mount of one: results and final state must be
//! equal.

mod attributes;
mod data;
mod extended;
mod names;
mod scene;
mod users;

use std::path::Path;

use hoistway_mount::WriteBack;

use self::scene::{Scenario, play};
use crate::support::{MountProcess, MountVariant, Volume, can_mount, has};

fn all() -> Vec<Scenario> {
    [names::SCENARIOS, attributes::SCENARIOS, data::SCENARIOS, extended::SCENARIOS, users::SCENARIOS].concat()
}

/// Scenarios whose change times differ when the kernel writes back: it does not know that a file
/// system changes them although the size stays the same (ext4 and tmpfs do, xfs does not).
const KERNEL_TIMES: &[&str] = &["cutting by name to the same size"];

/// Plays every scenario in two directories of one file system, one of them through a mount.
fn compare(volume: &Path, label: &str, variant: MountVariant) {
    let (plain, source) = (volume.join(format!("plain-{label}")), volume.join(format!("source-{label}")));
    for directory in [&plain, &source] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let but = if variant.write_back == WriteBack::Kernel { KERNEL_TIMES } else { &[] };
    let mounted = MountProcess::new(&source, variant);
    let mut differing = Vec::new();
    for scenario in all().into_iter().filter(|scenario| !but.contains(&scenario.name)) {
        let expected = play(&scenario, &plain);
        let found = play(&scenario, mounted.path());
        if expected != found {
            let lines = expected.len().max(found.len());
            let missing = String::from("(nothing)");
            let pairs =
                (0..lines).map(|line| (expected.get(line).unwrap_or(&missing), found.get(line).unwrap_or(&missing)));
            let pairs: Vec<_> = pairs
                .filter(|(plain, mount)| plain != mount)
                .map(|(plain, mount)| format!("  plain: {plain}\n  mount: {mount}"))
                .collect();
            differing.push(format!("{}:\n{}", scenario.name, pairs.join("\n")));
        }
    }
    assert!(differing.is_empty(), "{label}: {} of {} differ:\n{}", differing.len(), all().len(), differing.join("\n"));
}

fn compare_all(kind: &str) {
    if !can_mount("the comparison with a plain directory")
        || (kind != "tmpfs" && !has("the comparison", &format!("mkfs.{kind}")))
    {
        return;
    }
    let volume = Volume::new(kind, 512);
    for write_back in [WriteBack::Ours, WriteBack::Kernel] {
        compare(&volume.path(), &format!("{kind}-{write_back:?}-open"), MountVariant::open(write_back));
        compare(&volume.path(), &format!("{kind}-{write_back:?}-waiting"), MountVariant::waiting(write_back));
        compare(&volume.path(), &format!("{kind}-{write_back:?}-scheduled"), MountVariant::scheduled(write_back));
    }
    compare(
        &volume.path(),
        &format!("{kind}-descriptors"),
        MountVariant { handles: false, ..MountVariant::open(WriteBack::Ours) },
    );
}

#[test]
fn scenarios_are_complete_and_have_distinct_names() {
    let mut names: Vec<_> = all().iter().map(|scenario| scenario.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 150, "{count}");
}

#[test]
fn a_mount_of_ext4_behaves_like_ext4() {
    compare_all("ext4");
}

#[test]
fn a_mount_of_xfs_behaves_like_xfs() {
    compare_all("xfs");
}

#[test]
fn a_mount_of_tmpfs_behaves_like_tmpfs() {
    compare_all("tmpfs");
}
