//! A file a CPU, as blktrace writes them.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::record::Version;
use super::writer::Writer;
use super::{CPU_MAX, MESSAGE_BYTES_MAX};
use crate::batch::Batch;
use crate::sink::Sink;

/// Bytes of a file that wait in memory, at most.
const BUFFER_BYTES: usize = 64 * MESSAGE_BYTES_MAX;

/// Writes `NAME.blktrace.0`, `.1`, ...: what `blkparse -i NAME` and `hoistway trace ... NAME` read. Events of all CPUs may come in any order that is right
/// within each.
#[derive(Debug)]
pub struct Files {
    name: PathBuf,
    version: Version,
    counting: bool,
    /// By the CPU's number; blkparse ends at the first that is missing, so that files in between are made, if empty.
    files: Vec<Writer<BufWriter<File>>>,
}

impl Files {
    /// Begins with no file at all.
    pub fn new(name: &Path, version: Version, counting: bool) -> Files {
        Files { name: name.to_owned(), version, counting, files: Vec::new() }
    }

    /// The files that were written so far.
    pub fn paths(&self) -> Vec<PathBuf> {
        (0..self.files.len()).map(|cpu| self.path(cpu)).collect()
    }

    fn path(&self, cpu: usize) -> PathBuf {
        let mut path = self.name.as_os_str().to_owned();
        path.push(format!(".blktrace.{cpu}"));
        path.into()
    }

    fn add(&mut self) -> io::Result<()> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(self.path(self.files.len()))?);
        let writer = Writer::new(file).version(self.version);
        self.files.push(if self.counting { writer.counting() } else { writer });
        Ok(())
    }
}

impl Sink for Files {
    /// Writes each event to the file of its CPU; a CPU above [`CPU_MAX`] is an error.
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for event in batch.events() {
            if event.cpu > CPU_MAX {
                let what = format!("CPU {} of an event: {CPU_MAX} is the highest", event.cpu);
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
        self.files.iter_mut().try_for_each(Sink::finish)
    }
}
