//! A device in memory: one mapping, whose pages the system allocates on the first write and frees
//! on a trim.

use std::io;
use std::sync::Arc;

use hoistway_qos::{IoError, RequestOp};
use hoistway_reactor::{Allocation, Buffer, Region};
use rustix::mm::{Advice, ProtFlags, madvise};

use crate::output::IoOutput;

/// The granularity of allocation, in bytes.
const BLOCK_BYTES: u64 = 64 << 10;
/// The largest number of extents in one output.
const EXTENTS_MAX: usize = 64;

/// A device in memory.
#[derive(Debug)]
pub struct Memory {
    region: Arc<Region>,
    /// One bit per block of 64 KiB: set after a write, cleared by a trim.
    allocated: Vec<u64>,
}

impl Memory {
    /// Creates a device of zeroes.
    pub fn new(bytes: u64) -> io::Result<Memory> {
        let len = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let region = Arc::new(Region::map(len, ProtFlags::READ | ProtFlags::WRITE)?);
        let words = bytes.div_ceil(BLOCK_BYTES).div_ceil(64) as usize;
        Ok(Memory { region, allocated: vec![0; words] })
    }

    /// Executes an operation. The range is within the device, and `data` has at least the written
    /// length.
    pub fn perform(
        &mut self,
        op: RequestOp,
        offset: u64,
        length: u64,
        data: Option<Buffer>,
    ) -> Result<IoOutput, IoError> {
        match op {
            RequestOp::Read => self.read(offset, length),
            RequestOp::Write => {
                let data = data.ok_or(IoError::InvalidArgument)?;
                let data = data.get(..length as usize).ok_or(IoError::InvalidArgument)?;
                self.write(offset, data)
            }
            RequestOp::Zero { punch: false } => {
                self.zero(offset, length);
                self.mark(offset, length);
                Ok(IoOutput::Nothing)
            }
            RequestOp::Zero { punch: true } | RequestOp::Trim => {
                self.zero(offset, length);
                Ok(IoOutput::Nothing)
            }
            RequestOp::Status => Ok(IoOutput::Extents(self.status(offset, length))),
            RequestOp::Cache | RequestOp::Flush => Ok(IoOutput::Nothing),
        }
    }

    fn read(&self, offset: u64, length: u64) -> Result<IoOutput, IoError> {
        if !self.any_allocated(offset, length) {
            return Ok(IoOutput::Zeroes);
        }
        self.region.share(offset as usize, length as usize).map(IoOutput::Shared).ok_or(IoError::InvalidArgument)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<IoOutput, IoError> {
        let fits = offset.checked_add(data.len() as u64).is_some_and(|end| end <= self.region.len() as u64);
        if !fits {
            return Err(IoError::InvalidArgument);
        }
        self.populate(offset, data.len());
        self.mark(offset, data.len() as u64);
        // SAFETY: the destination is within the region; the source is a buffer outside of it. There
        // are no references into the region, only pointers.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.region.start().add(offset as usize), data.len()) };
        Ok(IoOutput::Nothing)
    }

    /// Lets the system allocate the pages of a large write in one call; a page fault for each costs
    /// half as much again.
    fn populate(&self, offset: u64, len: usize) {
        let from = offset.next_multiple_of(BLOCK_BYTES);
        let to = (offset + len as u64) / BLOCK_BYTES * BLOCK_BYTES;
        if from >= to || self.run_end(from / BLOCK_BYTES, to / BLOCK_BYTES).0 {
            return;
        }
        // SAFETY: the range is within the region and begins at a page; the call allocates missing
        // pages and leaves the others as they are.
        let _ = unsafe {
            let start = self.region.start().add(from as usize);
            madvise(start.cast(), (to - from) as usize, Advice::LinuxPopulateWrite)
        };
    }

    /// Zeroes a range: whole blocks are returned to the system, the remainders at both ends are
    /// written.
    fn zero(&mut self, offset: u64, length: u64) {
        let end = (offset + length).min(self.region.len() as u64);
        let whole_from = offset.next_multiple_of(BLOCK_BYTES);
        // The last block may be short: it is whole if the range reaches the end of the device.
        let whole_to = if end == self.region.len() as u64 { end } else { end - end % BLOCK_BYTES };
        if whole_from >= whole_to {
            self.fill_zero(offset, end);
            return;
        }
        self.fill_zero(offset, whole_from);
        self.fill_zero(whole_to, end);
        if !self.any_allocated(whole_from, whole_to - whole_from) {
            return;
        }
        // SAFETY: the range is within the region and begins at a page; there are no references into
        // it.
        let given = unsafe {
            let start = self.region.start().add(whole_from as usize);
            madvise(start.cast(), (whole_to - whole_from) as usize, Advice::LinuxDontNeed)
        };
        if given.is_err() {
            // The system refused; the range must read as zeroes all the same.
            self.fill_zero(whole_from, whole_to);
        }
        for block in whole_from / BLOCK_BYTES..whole_to.div_ceil(BLOCK_BYTES) {
            self.allocated[(block / 64) as usize] &= !(1 << (block % 64));
        }
    }

    /// Writes zeroes to a range, except to blocks that were never written.
    fn fill_zero(&mut self, from: u64, to: u64) {
        if from < to && self.any_allocated(from, to - from) {
            // SAFETY: the callers' ranges are within the region; there are no references into it.
            unsafe { std::ptr::write_bytes(self.region.start().add(from as usize), 0, (to - from) as usize) };
        }
    }

    fn any_allocated(&self, offset: u64, length: u64) -> bool {
        let (block, end) = (offset / BLOCK_BYTES, (offset + length).div_ceil(BLOCK_BYTES));
        block < end && self.run_end(block, end) != (false, end)
    }

    /// Returns whether a block is allocated, and the first block after it, up to `end`, that
    /// differs.
    fn run_end(&self, block: u64, end: u64) -> (bool, u64) {
        let word = |at: u64| self.allocated.get((at / 64) as usize).copied().unwrap_or(0);
        let allocated = word(block) >> (block % 64) & 1 == 1;
        let differs = |at: u64| if allocated { !word(at) } else { word(at) };
        let mut at = block;
        while at < end {
            // The bits from this block on, of one word: the first set bit is the first block that
            // differs.
            let bits = differs(at) >> (at % 64);
            if bits != 0 {
                return (allocated, (at + u64::from(bits.trailing_zeros())).min(end));
            }
            at += 64 - at % 64;
        }
        (allocated, end)
    }

    fn mark(&mut self, offset: u64, length: u64) {
        if length == 0 {
            return;
        }
        for block in offset / BLOCK_BYTES..=(offset + length - 1) / BLOCK_BYTES {
            if let Some(word) = self.allocated.get_mut((block / 64) as usize) {
                *word |= 1 << (block % 64);
            }
        }
    }

    fn status(&self, offset: u64, length: u64) -> Vec<Allocation> {
        let end = offset + length;
        let (mut at, mut extents) = (offset, Vec::new());
        while at < end && extents.len() < EXTENTS_MAX {
            let (allocated, block) = self.run_end(at / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES));
            let next = (block * BLOCK_BYTES).min(end);
            extents.push(Allocation { length: next - at, hole: !allocated });
            at = next;
        }
        extents
    }
}
