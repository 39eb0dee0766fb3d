//! Trees of files that become packages.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file with its directories.
pub(crate) fn write(to: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let parent = to.parent().unwrap_or(Path::new("."));
    let write = || {
        fs::create_dir_all(parent)?;
        fs::write(to, bytes)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    };
    write().with_context(|| format!("cannot write {}", to.display()))
}

/// Reads a file; an error names it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    write(to, read(from)?, mode)
}

/// Makes a symbolic link with its directories.
pub(crate) fn link(target: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
    symlink(target, to).with_context(|| format!("cannot make the link {}", to.display()))
}

/// Makes an empty directory, in place of what was there.
pub(crate) fn renew(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))
}

/// Lists the files and links below a directory with their paths from it, sorted.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => open.push(entry.path()),
                false => files.push(entry.path().strip_prefix(directory)?.to_owned()),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Gives every directory below one, and itself, mode 0755, whatever the umask is.
pub(crate) fn open_directories(directory: &Path) -> Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}
