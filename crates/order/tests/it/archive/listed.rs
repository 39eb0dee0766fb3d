//! Random trees, read back with the crate `tar`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use hoistway_order::SortKey;
use hoistway_order::archive::{Format, Options};
use proptest::prelude::*;
use tempfile::TempDir;

use super::archive_of;

/// Names of any bytes except slash, zero and newline: the crate ends PAX records at a newline.
/// Another test extracts such names with other programs.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if matches!(byte, 0 | b'/' | b'\n') { b'x' } else { byte });
    let letters = prop_oneof![
        prop::collection::vec(byte, 1..20),
        prop::collection::vec(b'a'..b'e', 90..110),
        prop::collection::vec(b'a'..b'e', 240..255),
    ];
    letters.prop_map(|name| if name == b"." || name == b".." { b"dots".to_vec() } else { name })
}

/// Files by path of up to four components, with sizes near those of blocks and segments.
fn files() -> impl Strategy<Value = BTreeMap<Vec<Vec<u8>>, usize>> {
    let size = prop_oneof![0..3usize, 500..520usize, 0..20_000usize, 261_000..263_000usize, 500_000..600_000usize];
    prop::collection::btree_map(prop::collection::vec(name(), 1..4), size, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_is_read_back_unchanged(files in files(), readers in 1..4usize, ahead in 1..40usize, order in 0..3usize, gnu: bool) {
        let folder = TempDir::new().unwrap();
        let top = folder.path().join("t");
        fs::create_dir(&top).unwrap();
        let mut wanted = BTreeMap::new();
        for (index, (parts, size)) in files.iter().enumerate() {
            let (last, above) = parts.split_last().unwrap();
            let directory = above.iter().fold(top.clone(), |path, part| path.join(OsStr::from_bytes(part)));
            let path = directory.join(OsStr::from_bytes(last));
            // A name may be both a file and a directory of another path.
            if fs::create_dir_all(&directory).is_err() || path.exists() {
                continue;
            }
            let data: Vec<u8> = (0..*size).map(|at| (at * 31 + index) as u8).collect();
            if fs::write(&path, &data).is_ok() {
                wanted.insert(path.strip_prefix(folder.path()).unwrap().as_os_str().as_bytes().to_vec(), data);
            }
        }
        let options = Options {
            by: [SortKey::Auto, SortKey::Inode, SortKey::Name][order],
            format: if gnu { Format::Gnu } else { Format::Pax },
            readers,
            read_ahead_files: ahead,
            read_ahead_bytes: 1 << 20,
            ..Options::default()
        };
        let (bytes, events) = archive_of(folder.path(), &options);
        prop_assert_eq!(events, []);
        prop_assert_eq!(bytes.len() % 10_240, 0);
        let mut found = BTreeMap::new();
        for entry in tar::Archive::new(&bytes[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path_bytes().into_owned();
            if entry.header().entry_type().is_file() {
                let mut data = Vec::new();
                std::io::Read::read_to_end(&mut entry, &mut data).unwrap();
                prop_assert!(found.insert(path, data).is_none(), "each file is there once");
            }
        }
        prop_assert_eq!(found, wanted);
    }
}
