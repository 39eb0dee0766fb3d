//! Random file operations through a mount, compared with a model: both write-back modes, with and
//! without queued requests.

use std::time::Duration;

use hoistway_mount::WriteBack;

use crate::support::fsx::{Exercise, new_seed};
use crate::support::{MountProcess, MountVariant, Volume, can_mount, has};

fn exercise(kind: &'static str, variant: MountVariant) {
    if !can_mount("random changes") || (kind != "tmpfs" && !has("random changes", &format!("mkfs.{kind}"))) {
        return;
    }
    let volume = Volume::new(kind, 400);
    let source = volume.path().join("source");
    std::fs::create_dir(&source).expect("a directory");
    let mounted = MountProcess::new(&source, variant);
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let seed = new_seed();
            let (inside, below) =
                (mounted.path().join(format!("file-{number}")), source.join(format!("file-{number}")));
            std::thread::spawn(move || {
                let mut exercise = Exercise::new(&inside, seed);
                let done = exercise.run(Duration::from_secs(5));
                assert!(done.is_ok(), "{kind}, {variant:?}, seed {seed}: {}", done.unwrap_err());
                let synced = std::fs::File::open(&inside).and_then(|file| file.sync_all());
                assert!(synced.is_ok(), "{synced:?}");
                assert!(
                    std::fs::read(&below).expect("it is there") == exercise.model(),
                    "seed {seed}: the file below is another"
                );
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("as it was written, so it is read");
    }
}

#[test]
fn random_operations_on_ext4_with_write_back_by_the_mount() {
    exercise("ext4", MountVariant::open(WriteBack::Ours));
}

#[test]
fn random_operations_on_ext4_with_kernel_write_back() {
    exercise("ext4", MountVariant::open(WriteBack::Kernel));
}

#[test]
fn random_operations_on_ext4_with_scheduling() {
    exercise("ext4", MountVariant::scheduled(WriteBack::Ours));
}

#[test]
fn random_operations_on_xfs_with_queued_requests() {
    exercise("xfs", MountVariant::waiting(WriteBack::Ours));
}

#[test]
fn random_operations_on_tmpfs_with_kernel_write_back_and_queued_requests() {
    exercise("tmpfs", MountVariant::waiting(WriteBack::Kernel));
}

#[test]
fn a_byte_that_differs_from_the_model_is_reported() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("file");
    let mut exercise = Exercise::new(&path, 1);
    while exercise.model().is_empty() {
        exercise.run(Duration::from_millis(100)).expect("a plain file");
    }
    let at = exercise.model().len() / 2;
    let wrong = !exercise.model()[at];
    let file = std::fs::File::options().write(true).open(&path).expect("it is there");
    std::os::unix::fs::FileExt::write_all_at(&file, &[wrong], at as u64).expect("it can be written");
    let compared = exercise.compare_all();
    assert!(compared.is_err_and(|difference| difference.contains(&format!("byte {at} is {wrong:#x}"))));
}
