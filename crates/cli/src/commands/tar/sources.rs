//! The roots of an archive: paths and lists of paths, in groups with one base directory each.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hoistway_order::{Tree, TreeFull, walk};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::messages::Reporter;
use crate::cli::{Source, TarArgs, is_standard};

/// Adds all names of the command line to the tree and reports errors.
pub fn find(args: &TarArgs, options: walk::Options<'_>, tree: &mut Tree, reporter: &mut Reporter<'_>) -> Result<()> {
    let mut options = options;
    let mut group: Vec<Vec<u8>> = Vec::new();
    for source in &args.sources.0 {
        match source {
            Source::Path(path) => group.push(path.as_os_str().as_bytes().to_vec()),
            Source::List(file) => group.extend(lines(file, args.null)?),
            Source::Directory(path) => {
                take(args, &options, std::mem::take(&mut group), tree, reporter)?;
                options.base = Some(Arc::new(directory(options.base.as_deref(), path)?));
            }
        }
    }
    take(args, &options, group, tree, reporter)
}

/// Adds a group of paths with a common base directory.
fn take(
    args: &TarArgs,
    options: &walk::Options<'_>,
    group: Vec<Vec<u8>>,
    tree: &mut Tree,
    reporter: &mut Reporter<'_>,
) -> Result<()> {
    group.iter().for_each(|path| reporter.report_prefix(path));
    let found = if args.no_recursion {
        walk::list(&mut group.into_iter(), options, tree, &mut |error| reporter.walk_error(&error)).map(drop)
    } else {
        let roots: Vec<PathBuf> = group.into_iter().map(|path| OsString::from_vec(path).into()).collect();
        walk::walk(&roots, options, tree, &mut |error| reporter.walk_error(&error))
    };
    found.map_err(|full: TreeFull| full.into())
}

/// Opens the directory of a `-C`, relative to the previous one.
fn directory(base: Option<&OwnedFd>, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match base {
        Some(base) => openat(base, path, flags, Mode::empty()),
        None => openat(CWD, path, flags, Mode::empty()),
    };
    opened.map_err(io::Error::from).with_context(|| format!("{}: Cannot open", path.display()))
}

/// Reads the lines of a file, or its zero-terminated strings; without empty ones.
pub fn lines(file: &Path, null: bool) -> Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    let read = if is_standard(file.as_os_str()) {
        io::stdin().lock().read_to_end(&mut text)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut text))
    };
    read.with_context(|| format!("{}: Cannot open", file.display()))?;
    let end = if null { 0 } else { b'\n' };
    Ok(text.split(|byte| *byte == end).filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}
