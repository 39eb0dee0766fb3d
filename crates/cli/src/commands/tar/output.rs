//! Where the archive goes: standard output, or a file that has its name when it is whole.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Error, Result, anyhow};
use flate2::write::GzEncoder;
use liblzma::stream::MtStreamBuilder;
use liblzma::write::XzEncoder;
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

    /// The archive is whole: it gets its name.
    pub fn keep(mut self) -> Result<()> {
        let finished = std::mem::replace(&mut self.encoder, Encoder::Finished).finish();
        let file = finished.map_err(|error| self.failed(error))?;
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
    // A link stays one: what it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let there = fs::metadata(&target).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A device, or a pipe; a directory is refused by the system.
        return Ok((File::options().write(true).open(&target)?, Place::Direct));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    prefix.push(".");
    let made = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    let (file, temporary) = made.into_parts();
    if let Some(there) = there {
        // Whoever may read the archive that was there may read the new one.
        fs::set_permissions(&temporary, there.permissions())?;
    }
    Ok((file, Place::Beside { temporary: Temporary::new(temporary)?, target }))
}

fn identity(metadata: fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// A file that is removed unless it is kept, by a signal too.
struct Temporary {
    name: OsString,
    path: Arc<Mutex<Option<TempPath>>>,
}

impl Temporary {
    fn new(path: TempPath) -> io::Result<Temporary> {
        let name = path.file_name().unwrap_or_default().to_owned();
        let path = Arc::new(Mutex::new(Some(path)));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let watched = Arc::clone(&path);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                drop(watched.lock().unwrap_or_else(PoisonError::into_inner).take());
                tell("hoistway tar: interrupted: nothing is left of the archive");
                // As a shell tells of a program that a signal ended.
                std::process::exit(128 + signal);
            }
        })?;
        Ok(Temporary { name, path })
    }

    fn keep(&self, target: &Path) -> io::Result<()> {
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        path.take().map_or(Ok(()), |path| path.persist(target).map_err(|error| error.error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
