//! Writes one file for each CPU, as blktrace does.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::record::Version;
use super::writer::Writer;
use super::{CPU_MAX, MESSAGE_BYTES_MAX};
use crate::batch::Batch;
use crate::writer::EventWriter;

/// Size of a file's write buffer in bytes.
const BUFFER_BYTES: usize = 64 * MESSAGE_BYTES_MAX;

/// A function that creates an output file.
pub type CreateFile = fn(&Path) -> io::Result<File>;

/// Writes `NAME.blktrace.0`, `.1`, ..., which `blkparse -i NAME` and `hoistway trace ... NAME`
/// read. Events must be in order within each CPU only.
#[derive(Debug)]
pub struct CpuFiles {
    name: PathBuf,
    version: Version,
    counting: bool,
    /// Creates a file.
    create: CreateFile,
    /// Files by CPU number. blkparse stops at the first missing file, so that files of CPUs without
    /// events are created as well.
    files: Vec<Writer<BufWriter<File>>>,
}

impl CpuFiles {
    /// Creates a writer without files; a file is created with the first event of its CPU.
    pub fn new(name: &Path, version: Version, counting: bool) -> CpuFiles {
        CpuFiles { name: name.to_owned(), version, counting, create: |path| File::create(path), files: Vec::new() }
    }

    /// Creates files by this function, which may refuse them.
    pub fn created_by(self, create: CreateFile) -> CpuFiles {
        CpuFiles { create, ..self }
    }

    /// Paths of the files that were created so far.
    pub fn paths(&self) -> Vec<PathBuf> {
        (0..self.files.len()).map(|cpu| self.path(cpu)).collect()
    }

    fn path(&self, cpu: usize) -> PathBuf {
        let mut path = self.name.as_os_str().to_owned();
        path.push(format!(".blktrace.{cpu}"));
        path.into()
    }

    fn add(&mut self) -> io::Result<()> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, (self.create)(&self.path(self.files.len()))?);
        let writer = Writer::new(file).version(self.version);
        self.files.push(if self.counting { writer.counting() } else { writer });
        Ok(())
    }
}

impl EventWriter for CpuFiles {
    /// Writes each event to the file of its CPU. A CPU above [`CPU_MAX`] is an error.
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for event in batch.events() {
            if event.cpu > CPU_MAX {
                let what = format!("CPU {} of an event exceeds the maximum, {CPU_MAX}", event.cpu);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            let at = event.cpu as usize;
            while self.files.len() <= at {
                self.add()?;
            }
            if let Some(file) = self.files.get_mut(at) {
                file.event(event, batch.payload(event))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(EventWriter::finish)
    }
}
