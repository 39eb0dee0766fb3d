//! The output of `hoistway tar`: standard output, or a file that appears when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Error, Result, anyhow};
use flate2::write::GzEncoder;
use hoistway_machine::{OpenUnusedError, open_unused};
use hoistway_report::atomic_file::sync;
use liblzma::stream::MtStreamBuilder;
use liblzma::write::XzEncoder;

use super::temporary_file::{TemporaryFile, copy_access, resolve_links};
use crate::cli::{TarArgs, is_standard};
use crate::failure::{UsageError, print_message};

/// Requested pipe capacity in bytes. A large pipe needs fewer context switches.
const PIPE_BYTES: usize = 1 << 20;
/// Buffer size for compressed data in bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// The default levels of gzip, xz and zstd.
const GZIP_LEVEL: u32 = 6;
const XZ_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// The output of an archive.
pub struct Output {
    encoder: Encoder,
    /// Name of the output in messages.
    name: String,
    destination: Destination,
    /// Device and inode numbers of the archive and of the file that it replaces.
    own: Vec<(u64, u64)>,
}

/// The way in which the output gets its name.
enum Destination {
    /// The output is written in place.
    Direct,
    /// The output is a temporary file that is renamed at the end.
    Beside { temporary: TemporaryFile, target: PathBuf },
}

/// The compression of an archive.
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
    /// Opens the output for the given arguments.
    pub fn open(args: &TarArgs) -> Result<Output> {
        let compression = Compression::of(args)?;
        let path = args.file.as_deref().filter(|path| !is_standard(path.as_os_str()));
        let (file, destination, name) = match path {
            None => (standard_output()?, Destination::Direct, "standard output".to_owned()),
            Some(path) => {
                let (file, destination) = open_at(path, args.force_in_use)?;
                (file, destination, path.display().to_string())
            }
        };
        let mut own = Vec::new();
        own.extend(path.and_then(|path| fs::metadata(path).ok()).filter(fs::Metadata::is_file).map(identity));
        own.extend(file.metadata().ok().filter(fs::Metadata::is_file).map(identity));
        Ok(Output { encoder: compression.encoder(file)?, name, destination, own })
    }

    /// Returns device and inode numbers of files that must not be archived.
    pub fn own(&self) -> Vec<(u64, u64)> {
        self.own.clone()
    }

    /// Returns the name of the temporary file; empty if the output is written in place.
    pub fn temporary(&self) -> OsString {
        match &self.destination {
            Destination::Direct => OsString::new(),
            Destination::Beside { temporary, .. } => temporary.name().to_owned(),
        }
    }

    /// Completes the archive: syncs it and renames the temporary file.
    pub fn keep(mut self) -> Result<()> {
        let finished = std::mem::replace(&mut self.encoder, Encoder::Finished).finish();
        let file = finished.map_err(|error| self.failed(error))?;
        file.as_ref().map_or(Ok(()), sync).map_err(|error| self.failed(error))?;
        let Destination::Beside { temporary, target } = self.destination else { return Ok(()) };
        drop(file);
        temporary.keep(&target).with_context(|| format!("{}: Cannot rename", target.display()))
    }

    /// Returns the error for a failed write.
    pub fn failed(&self, error: io::Error) -> Error {
        let is_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let error = anyhow!(error);
        if is_pipe {
            return error;
        }
        let left = match self.destination {
            Destination::Direct => "the written part has no end mark",
            Destination::Beside { .. } => "nothing is left of it",
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
        // Compressed data are flushed at the end only: an earlier flush makes them longer.
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

/// Returns standard output as a file for binary data.
fn standard_output() -> Result<File> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        let what = "an archive cannot be written to a terminal: name a file, as in `hoistway tar -cf x.tar DIR`";
        return Err(UsageError(what.to_owned()).into());
    }
    // Fails if standard output is not a pipe; that is harmless.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
    Ok(File::from(stdout.as_fd().try_clone_to_owned().context("standard output")?))
}

/// Opens a path for output: a device in place, unless it is in use, and a file by way of a
/// temporary file.
fn open_at(path: &Path, force_in_use: bool) -> Result<(File, Destination)> {
    open_output(path, force_in_use).map_err(|error| match error {
        OpenUnusedError::InUse(in_use) => anyhow!("{in_use} (--force-in-use overrides this)"),
        OpenUnusedError::System(error) => Error::new(error).context(format!("{}: Cannot open", path.display())),
    })
}

fn open_output(path: &Path, force_in_use: bool) -> Result<(File, Destination), OpenUnusedError> {
    let in_place = |target: &Path, options: &OpenOptions| {
        let opened = open_unused(target, options, 0, force_in_use)?;
        if let Some(in_use) = opened.overridden {
            print_message(&format!("hoistway tar: {in_use}: --force-in-use overrides this"));
        }
        Ok((opened.file, Destination::Direct))
    };
    let target = resolve_links(path)?;
    let there = fs::metadata(&target).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A device or a pipe; the system refuses a directory.
        return in_place(&target, File::options().write(true));
    }
    let made = TemporaryFile::beside(&target);
    let Some(there) = there else {
        let (file, temporary) = made?;
        return Ok((file, Destination::Beside { temporary, target }));
    };
    match made {
        Ok((file, temporary)) => {
            copy_access(&file, &there, &target)?;
            Ok((file, Destination::Beside { temporary, target }))
        }
        // The process may be allowed to write this file, but not to create files here.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let opened = in_place(&target, File::options().write(true).truncate(true))?;
            let path = path.display();
            print_message(&format!(
                "hoistway tar: {path}: no temporary file can be created beside it: the old archive is overwritten"
            ));
            Ok(opened)
        }
        Err(error) => Err(error.into()),
    }
}

fn identity(metadata: fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
