//! Where the archive goes: standard output, or a file that has its name when it is whole.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Error, Result, anyhow};
use flate2::write::GzEncoder;
use liblzma::stream::MtStreamBuilder;
use liblzma::write::XzEncoder;
use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempPath;

use crate::cli::{TarArgs, is_standard};
use crate::failure::{UsageError, tell};

/// What a pipe holds, if the system lets us: fewer turns between us and who reads.
const PIPE_BYTES: usize = 1 << 20;
/// What is handed on at once where compressed bytes come in small pieces.
const BUFFER_BYTES: usize = 256 << 10;
/// The levels that the tools have by themselves.
const GZIP_LEVEL: u32 = 6;
const XZ_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Where the archive goes.
pub struct Output {
    encoder: Encoder,
    /// Its name, for messages.
    name: String,
    place: Place,
    /// Devices and inodes of what must not be archived.
    own: Vec<(u64, u64)>,
}

/// What becomes of it at the end.
enum Place {
    /// Nothing: it is written where it goes.
    Direct,
    /// It gets its name.
    Beside { temporary: Temporary, target: PathBuf },
}

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Xz,
    Zstd,
}

enum Encoder {
    None(File),
    Gzip(GzEncoder<BufWriter<File>>),
    Xz(XzEncoder<BufWriter<File>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<File>>>),
    Finished,
}

impl Output {
    /// Opens it.
    pub fn open(args: &TarArgs) -> Result<Output> {
        let compression = Compression::of(args)?;
        let path = args.file.as_deref().filter(|path| !is_standard(path.as_os_str()));
        let (file, place, name) = match path {
            None => (standard_output()?, Place::Direct, "standard output".to_owned()),
            Some(path) => {
                let (file, place) = at(path).with_context(|| format!("{}: Cannot open", path.display()))?;
                (file, place, path.display().to_string())
            }
        };
        let mut own = Vec::new();
        own.extend(path.and_then(|path| fs::metadata(path).ok()).filter(fs::Metadata::is_file).map(identity));
        own.extend(file.metadata().ok().filter(fs::Metadata::is_file).map(identity));
        Ok(Output { encoder: compression.encoder(file)?, name, place, own })
    }

    /// Devices and inodes of what must not be archived.
    pub fn own(&self) -> Vec<(u64, u64)> {
        self.own.clone()
    }

    /// What the file is called that the archive is in until it is whole; empty if it is written where it goes.
    pub fn temporary(&self) -> OsString {
        match &self.place {
            Place::Direct => OsString::new(),
            Place::Beside { temporary, .. } => temporary.name.clone(),
        }
    }

    /// The archive is whole: it gets its name when it is on the disk.
    pub fn keep(mut self) -> Result<()> {
        let finished = std::mem::replace(&mut self.encoder, Encoder::Finished).finish();
        let file = finished.map_err(|error| self.failed(error))?;
        file.as_ref().map_or(Ok(()), sync).map_err(|error| self.failed(error))?;
        let Place::Beside { temporary, target } = self.place else { return Ok(()) };
        drop(file);
        temporary.keep(&target).with_context(|| format!("{}: Cannot rename", target.display()))
    }

    /// Why there is no archive.
    pub fn failed(&self, error: io::Error) -> Error {
        let is_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let error = anyhow!(error);
        if is_pipe {
            return error;
        }
        let left = match self.place {
            Place::Direct => "what was written has no end mark",
            Place::Beside { .. } => "nothing is left of it",
        };
        error.context(format!("{}: Cannot write ({left})", self.name))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::None(file) => file.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Xz(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Finished => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // What is compressed is flushed at its end; before, that would only make it longer.
        Ok(())
    }
}

impl Compression {
    fn of(args: &TarArgs) -> Result<Compression> {
        if args.gzip {
            return Ok(Compression::Gzip);
        }
        if args.xz {
            return Ok(Compression::Xz);
        }
        if args.zstd {
            return Ok(Compression::Zstd);
        }
        let name = args.file.as_deref().unwrap_or(Path::new("-"));
        if !args.auto_compress {
            return Ok(Compression::None);
        }
        match name.extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
            "gz" | "tgz" | "taz" => Ok(Compression::Gzip),
            "xz" | "txz" => Ok(Compression::Xz),
            "zst" | "tzst" => Ok(Compression::Zstd),
            other @ ("bz2" | "tbz" | "tbz2" | "lz" | "lzma" | "tlz" | "lzo" | "Z" | "lz4" | "br") => {
                let name = name.display();
                let what = format!(
                    "{name}: archives are compressed as .gz, .xz and .zst, not as .{other}: write to a pipe, as in `hoistway tar -c ... | bzip2 > x.tar.bz2`"
                );
                Err(UsageError(what).into())
            }
            _ => Ok(Compression::None),
        }
    }

    fn encoder(self, file: File) -> Result<Encoder> {
        let buffered = |file| BufWriter::with_capacity(BUFFER_BYTES, file);
        let threads = thread::available_parallelism().map_or(1, |threads| threads.get() as u32);
        Ok(match self {
            Compression::None => Encoder::None(file),
            Compression::Gzip => Encoder::Gzip(GzEncoder::new(buffered(file), flate2::Compression::new(GZIP_LEVEL))),
            Compression::Xz => {
                let stream = MtStreamBuilder::new().preset(XZ_LEVEL).threads(threads).encoder()?;
                Encoder::Xz(XzEncoder::new_stream(buffered(file), stream))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(buffered(file), ZSTD_LEVEL)?;
                encoder.multithread(threads)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(Box::new(encoder))
            }
        })
    }
}

impl Encoder {
    fn finish(self) -> io::Result<Option<File>> {
        let whole = |buffer: BufWriter<File>| buffer.into_inner().map_err(io::IntoInnerError::into_error);
        Ok(Some(match self {
            Encoder::None(file) => file,
            Encoder::Gzip(encoder) => whole(encoder.finish()?)?,
            Encoder::Xz(encoder) => whole(encoder.finish()?)?,
            Encoder::Zstd(encoder) => whole(encoder.finish()?)?,
            Encoder::Finished => return Ok(None),
        }))
    }
}

/// Standard output as a file, for what is no text.
fn standard_output() -> Result<File> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        let what = "an archive is nothing for a terminal: name a file, as in `hoistway tar -cf x.tar DIR`";
        return Err(UsageError(what.to_owned()).into());
    }
    // If it is a pipe, and the system lets us.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
    Ok(File::from(stdout.as_fd().try_clone_to_owned().context("standard output")?))
}

/// Opens what is at a path, or something beside it that will take its place.
fn at(path: &Path) -> io::Result<(File, Place)> {
    let target = led_to(path)?;
    let there = fs::metadata(&target).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A device, or a pipe; a directory is refused by the system.
        return Ok((File::options().write(true).open(&target)?, Place::Direct));
    }
    let made = Temporary::beside(&target);
    let Some(there) = there else {
        let (file, temporary) = made?;
        return Ok((file, Place::Beside { temporary, target }));
    };
    match made {
        Ok((file, temporary)) => {
            take_after(&file, &there, &target)?;
            Ok((file, Place::Beside { temporary, target }))
        }
        // Who may not make files here may be allowed to write this one.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let file = File::options().write(true).truncate(true).open(&target)?;
            let path = path.display();
            tell(&format!("hoistway tar: {path}: no file can be made beside it: what was there is written over"));
            Ok((file, Place::Direct))
        }
        Err(error) => Err(error),
    }
}

/// How many links the system follows.
const LINKS_MAX: usize = 40;

/// What a path leads to: a link stays one, and what it leads to is replaced, or made.
fn led_to(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&at) {
            Ok(to) => at = at.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(fs::canonicalize(&at).unwrap_or(at)),
        }
    }
    Err(Errno::LOOP.into())
}

const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Lets those use a file who may use the one that it takes the place of, as far as we may: nobody else.
fn take_after(file: &File, there: &Metadata, target: &Path) -> io::Result<()> {
    let made = file.metadata()?;
    let is_ours = (made.uid(), made.gid()) == (there.uid(), there.gid());
    let mut mode = there.mode() & 0o7777;
    let has_group = is_ours
        || fchown(file, Some(there.uid()), Some(there.gid())).is_ok()
        || fchown(file, None, Some(there.gid())).is_ok();
    if !has_group {
        // Another group may do what all may.
        mode = mode & !0o070 | (mode & 0o007) << 3;
    }
    let mut list = Vec::with_capacity(LIST_BYTES);
    let listed = getxattr(target, ACCESS_LIST, spare_capacity(&mut list));
    if listed.is_ok() && has_group {
        let _ = fsetxattr(file, ACCESS_LIST, &list, XattrFlags::empty());
    } else {
        // The folder may have handed one on.
        let _ = fremovexattr(file, ACCESS_LIST);
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// The longest value of an attribute.
const LIST_BYTES: usize = 64 << 10;

fn identity(metadata: fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Sees to it that a file's data are on the disk: where these turn out not to fit only then, that is heard here.
fn sync(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.sync_all() {
        // A file system that has nothing to do for that.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        synced => synced,
    }
}

/// A file that is removed unless it is kept, by a signal too.
struct Temporary {
    name: OsString,
    state: Arc<Mutex<State>>,
}

/// What a signal finds.
enum State {
    /// No file is there yet, or it was removed.
    Nothing,
    Made(TempPath),
    /// It has its name by now, or none could be made.
    NotOurs,
}

/// How much of a name is in that of the file beside it, so that the system takes it: 255 bytes without dots, letters and the ending.
const NAME_BYTES: usize = 200;

impl Temporary {
    /// Makes a file that will take the place of another one.
    fn beside(target: &Path) -> io::Result<(File, Temporary)> {
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.as_bytes();
        let mut ends = name.len().min(NAME_BYTES);
        // No letter is cut in two.
        while ends < name.len() && name[ends] & 0xc0 == 0x80 && ends > 0 {
            ends -= 1;
        }
        let prefix = [b".", &name[..ends], b"."].concat();
        let state = Arc::new(Mutex::new(State::Nothing));
        // A signal waits for it until the file that it removes is known.
        let mut made = state.lock().unwrap_or_else(PoisonError::into_inner);
        watch(&state)?;
        let file = tempfile::Builder::new()
            .prefix(OsStr::from_bytes(&prefix))
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder);
        match file {
            Ok(file) => {
                let (file, path) = file.into_parts();
                let name = path.file_name().unwrap_or_default().to_owned();
                *made = State::Made(path);
                drop(made);
                Ok((file, Temporary { name, state }))
            }
            Err(error) => {
                *made = State::NotOurs;
                Err(error)
            }
        }
    }

    fn keep(&self, target: &Path) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::NotOurs) {
            State::Made(path) => path.persist(target).map_err(|error| error.error),
            State::Nothing | State::NotOurs => Ok(()),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Made(_) = *state {
            *state = State::Nothing;
        }
    }
}

/// Removes the file and ends the run when a signal comes that our caller does not want ignored, as `nohup` does and shells do for what runs in the background.
fn watch(state: &Arc<Mutex<State>>) -> io::Result<()> {
    let ignored = ignored();
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heard)?;
    let watched = Arc::clone(state);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let mut state = watched.lock().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*state, State::NotOurs) {
                *state = State::Nothing;
                tell("hoistway tar: interrupted: nothing is left of the archive");
            }
            // As a shell tells of a program that a signal ended.
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Signals that were ignored before anybody asked for them, a bit each from the lowest on.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
