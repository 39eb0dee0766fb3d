//! Every trace of testdata, written as a set of Parquet files and read back.

use std::path::{Path, PathBuf};

use hoistway_trace::describe::describe;
use hoistway_trace::parquet::{Partition, Writer};
use hoistway_trace::{EventWriter as _, Format, Input, OpenOptions, Source, files, open};

use crate::common::{events, file, write_to};

/// Returns the files below a directory, in order.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn opened(path: &Path, format: Option<Format>) -> Option<Box<dyn Source + Send>> {
    let inputs = files::resolve(path).unwrap().into_iter().map(Input::Path).collect();
    open(inputs, &OpenOptions { format, ..OpenOptions::default() }).ok()
}

#[test]
fn every_sample_is_the_same_after_it_was_written_as_a_set() {
    let (mut read, mut formats) = (0, Vec::new());
    for sample in all_files(&file("")) {
        let Some(mut source) = opened(&sample, None) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("set");
        // Samples that need options beyond a path are left out: their readers end with an error.
        let mut batch = hoistway_trace::Batch::new();
        let mut writer = Writer::folder(&set, Partition { events: 500, interval_ns: None }).unwrap();
        let mut failed = false;
        loop {
            match source.next(&mut batch) {
                Ok(()) if batch.is_empty() => break,
                Ok(()) => writer.write(&batch).unwrap(),
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        if failed {
            continue;
        }
        writer.finish().unwrap();
        let name = sample.display();
        let mut again = opened(&set, Some(Format::Parquet)).unwrap();
        let (ours, theirs) = (events(again.as_mut()), events(opened(&sample, None).unwrap().as_mut()));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert!(ours == theirs, "{name}: an event differs");
        assert_eq!(again.notices(), [], "{name}");
        let ours = describe(opened(&set, None).unwrap().as_mut()).unwrap();
        assert_eq!(ours, describe(opened(&sample, None).unwrap().as_mut()).unwrap(), "{name}");
        read += 1;
        formats.push(sample.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned());
    }
    formats.dedup();
    assert!(read >= 30, "only {read} samples were read: {formats:?}");
}

#[test]
fn a_capture_of_all_cpus_is_the_same_in_one_file_and_in_a_set() {
    let captures = ["blktrace/vda-bfq.blktrace.0.xz", "blktrace/vda-bfq.blktrace.1.xz"];
    let folder = tempfile::tempdir().unwrap();
    let (one, set) = (folder.path().join("one.parquet"), folder.path().join("set"));
    let mut source = crate::common::open_files(&captures);
    write_to(source.as_mut(), &mut Writer::file(&one, |path| std::fs::File::create(path)));
    let interval = Partition { events: 1 << 20, interval_ns: Some(100_000_000) };
    write_to(crate::common::open_files(&captures).as_mut(), &mut Writer::folder(&set, interval).unwrap());
    assert!(std::fs::read_dir(&set).unwrap().count() > 2);
    let whole = describe(crate::common::open_files(&captures).as_mut()).unwrap();
    assert!(whole.processes.len() > 1 && whole.depth.under_way_at_q.max > 1);
    for path in [&one, &set] {
        assert_eq!(describe(opened(path, None).unwrap().as_mut()).unwrap(), whole);
    }
}
