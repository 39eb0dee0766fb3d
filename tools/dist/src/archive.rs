//! Archives and checksums that depend on contents only: entries in order, owned by root, with the
//! time of the commit.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::source::Packing;
use crate::tree;

/// Packs the files, links and directories below a directory under a prefix.
pub(crate) fn tar(directory: &Path, prefix: &str, time: u64) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let mut known: Vec<PathBuf> = Vec::new();
    for file in tree::files_below(directory)? {
        let from = directory.join(&file);
        let path = Path::new(prefix).join(&file);
        let mut parents: Vec<&Path> = path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        parents.reverse();
        for parent in parents {
            if !known.iter().any(|path| path == parent) {
                known.push(parent.to_owned());
                let mut header = header(EntryType::Directory, 0o755, 0, time);
                builder.append_data(&mut header, parent, std::io::empty())?;
            }
        }
        let data = fs::symlink_metadata(&from)?;
        if data.is_symlink() {
            builder.append_link(&mut header(EntryType::Symlink, 0o777, 0, time), &path, fs::read_link(&from)?)?;
        } else {
            let mode = if data.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 };
            let bytes = tree::read(&from)?;
            let mut header = header(EntryType::Regular, mode, bytes.len() as u64, time);
            builder.append_data(&mut header, &path, bytes.as_slice())?;
        }
    }
    Ok(builder.into_inner()?)
}

/// Packs named contents, in the given order.
pub(crate) fn tar_of(entries: &[(String, Vec<u8>)], time: u64) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (name, bytes) in entries {
        let mut header = header(EntryType::Regular, 0o644, bytes.len() as u64, time);
        builder.append_data(&mut header, name, bytes.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

fn header(kind: EntryType, mode: u32, size: u64, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Compresses bytes without a name and a time, as small as possible.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    gzip_as(bytes, Packing::Small)
}

/// Compresses bytes without a name and a time.
pub(crate) fn gzip_as(bytes: &[u8], packing: Packing) -> Result<Vec<u8>> {
    let level = match packing {
        Packing::Small => Compression::best(),
        Packing::Fast => Compression::fast(),
    };
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file that `sha256sum --check` reads.
pub(crate) fn sums(files: &[PathBuf]) -> Result<String> {
    let line = |file: &PathBuf| -> Result<String> {
        let name = file.file_name().context("the name of a package")?.to_string_lossy();
        Ok(format!("{}  {name}\n", sha256(&tree::read(file)?)))
    };
    files.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_the_same_files_are_the_same_bytes() {
        let pack = |order: [&str; 3]| {
            let directory = tempfile::tempdir().expect("a directory");
            for name in order {
                tree::write(&directory.path().join(name), name, 0o600).expect("a file");
            }
            tree::link("one", &directory.path().join("link")).expect("a link");
            gzip(&tar(directory.path(), "top", 7).expect("an archive")).expect("compressed")
        };
        let packed = pack(["one", "a/two", "a/b/three"]);
        assert_eq!(packed, pack(["a/b/three", "one", "a/two"]));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let entries = archive.entries().expect("entries").map(|entry| {
            let entry = entry.expect("an entry");
            let header = entry.header();
            (entry.path().expect("a path").display().to_string(), header.mode().ok(), header.mtime().ok())
        });
        let entries: Vec<_> = entries.collect();
        let directory = |name: &str| (name.to_owned(), Some(0o755), Some(7));
        let file = |name: &str| (name.to_owned(), Some(0o644), Some(7));
        let link = ("top/link".to_owned(), Some(0o777), Some(7));
        let expected = [
            directory("top"),
            directory("top/a"),
            directory("top/a/b"),
            file("top/a/b/three"),
            file("top/a/two"),
            link,
            file("top/one"),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn the_sum_of_nothing_is_the_known_one() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
