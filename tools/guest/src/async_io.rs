//! Reads that are submitted in batches, by the asynchronous I/O of the kernel.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::Outcome;
use crate::system::AlignedBuffer;

/// The control block of a request, as the kernel's header linux/aio_abi.h defines it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    flags: i32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    event_flags: u32,
    event_descriptor: u32,
}

/// A completion, as the same header defines it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Completion {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// The operation of a read.
const PREAD: u16 = 0;

/// Buffers and control blocks for batches of reads.
#[derive(Debug)]
pub struct Batch {
    context: libc::c_ulong,
    buffer: AlignedBuffer,
    request_bytes: usize,
    blocks: Vec<ControlBlock>,
    completions: Vec<Completion>,
}

impl Batch {
    /// Creates a batch of at most `depth` reads of `request_bytes` each.
    pub fn new(depth: usize, request_bytes: usize) -> Outcome<Batch> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the pointer is to a number that lives during the call.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        if result < 0 {
            return Err(format!("io_setup for {depth} requests: {}", io::Error::last_os_error()));
        }
        Ok(Batch {
            context,
            buffer: AlignedBuffer::new(depth * request_bytes),
            request_bytes,
            blocks: vec![ControlBlock::default(); depth],
            completions: vec![Completion::default(); depth],
        })
    }

    /// Submits a read at each offset, and waits for all. There are at most as many offsets as the
    /// batch is deep.
    pub fn read(&mut self, file: &File, offsets: &[u64]) -> Outcome<()> {
        let count = offsets.len().min(self.blocks.len());
        let memory = self.buffer.first(count * self.request_bytes);
        let chunks = memory.chunks_exact_mut(self.request_bytes);
        for ((block, offset), chunk) in self.blocks.iter_mut().zip(offsets).zip(chunks) {
            *block = ControlBlock {
                opcode: PREAD,
                descriptor: file.as_raw_fd() as u32,
                buffer: chunk.as_mut_ptr() as u64,
                bytes: chunk.len() as u64,
                offset: i64::try_from(*offset).unwrap_or(i64::MAX),
                ..ControlBlock::default()
            };
        }
        let pointers: Vec<*const ControlBlock> =
            self.blocks.iter().take(count).map(|block| &raw const *block).collect();
        // SAFETY: the control blocks, their buffers and the file live until all completions were
        // taken below.
        let submitted = unsafe { libc::syscall(libc::SYS_io_submit, self.context, count, pointers.as_ptr()) };
        if usize::try_from(submitted).ok() != Some(count) {
            return Err(format!("io_submit: {submitted} of {count}: {}", io::Error::last_os_error()));
        }
        let (mut taken, timeout) = (0, std::ptr::null::<libc::timespec>());
        while taken < count {
            let room = count - taken;
            // SAFETY: the array has room for that many completions.
            let got = unsafe {
                libc::syscall(libc::SYS_io_getevents, self.context, 1, room, self.completions.as_mut_ptr(), timeout)
            };
            let got = usize::try_from(got).map_err(|_| format!("io_getevents: {}", io::Error::last_os_error()))?;
            if let Some(bad) = self.completions.iter().take(got).find(|one| one.result != self.request_bytes as i64) {
                return Err(format!("a read returned {} instead of {}", bad.result, self.request_bytes));
            }
            taken += got;
        }
        Ok(())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: the context is valid, and no request is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_at_all_offsets() {
        let path = std::env::temp_dir().join(format!("hoistway-batch-{}", std::process::id()));
        let bytes: Vec<u8> = (0..4096u32).map(|at| (at / 512) as u8).collect();
        std::fs::write(&path, bytes).expect("a file");
        let file = File::open(&path).expect("it exists");
        let mut batch = Batch::new(4, 512).expect("asynchronous I/O");
        batch.read(&file, &[512, 0, 3584]).expect("three reads");
        let read: Vec<u8> = batch.buffer.first(1536).chunks(512).map(|chunk| chunk[511]).collect();
        assert_eq!(read, [1, 0, 7]);
        std::fs::remove_file(path).expect("it exists");
    }
}
