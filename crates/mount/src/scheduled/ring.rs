//! The thread that reads and writes files by io_uring, for those whose turn had not come when they asked.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use hoistway_serve::buffer::{Buffer, Pool};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slab::Slab;

use super::executors::{Executors, Run};
use crate::passthrough::give_up_reserves;
use crate::{Backing, Job};

/// Submissions that the kernel takes at once. More than devices are given at once come rarely.
const ENTRIES: u32 = 256;
/// Memory for what is read: 16 reads of the largest size, and more is taken from the system.
const POOL_BYTES: usize = 16 << 20;
/// The number of the completion that says that something was given.
const WAKE: u64 = u64::MAX;

/// How the thread is given things.
#[derive(Clone)]
pub(super) struct Ring {
    inner: Arc<Inner>,
}

struct Inner {
    given: Mutex<Given>,
    wake: OwnedFd,
    thread: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Given {
    runs: VecDeque<Run>,
    is_closed: bool,
}

impl Ring {
    /// Has it done; gives it back if nothing is done any more.
    pub fn give(&self, run: Run) -> Option<Run> {
        let mut given = self.inner.given.lock().unwrap_or_else(PoisonError::into_inner);
        if given.is_closed {
            return Some(run);
        }
        let was_empty = given.runs.is_empty();
        given.runs.push_back(run);
        drop(given);
        // The thread itself looks before it sleeps.
        if was_empty && self.inner.thread.get() != Some(&thread::current().id()) {
            self.wake();
        }
        None
    }

    /// Nothing more will be given.
    pub fn close(&self) {
        self.inner.given.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.wake();
    }

    /// Takes nothing more, and does what is left here.
    fn end(&self) {
        let runs = {
            let mut given = self.inner.given.lock().unwrap_or_else(PoisonError::into_inner);
            given.is_closed = true;
            std::mem::take(&mut given.runs)
        };
        runs.into_iter().for_each(Run::go);
    }

    fn wake(&self) {
        // It fails only where the count would overflow: then it is awake anyway.
        let _ = rustix::io::write(&self.inner.wake, &1u64.to_ne_bytes());
    }
}

/// Starts the thread, where the system has io_uring; else threads do its work.
pub(super) fn start(executors: &Executors) {
    let made = IoUring::new(ENTRIES).and_then(|ring| Ok((ring, eventfd(0, EventfdFlags::CLOEXEC)?)));
    let (uring, wake) = match made {
        Ok(made) => made,
        Err(error) => return tracing::info!("io_uring cannot be used ({error}): threads read and write instead"),
    };
    let inner = Inner { given: Mutex::default(), wake, thread: OnceLock::new() };
    let ring = Ring { inner: Arc::new(inner) };
    let of_thread = ring.clone();
    let spawned = thread::Builder::new().name("hoistway-ring".into()).spawn(move || {
        give_up_reserves();
        let _ = of_thread.inner.thread.set(thread::current().id());
        let mut worker = Worker {
            uring,
            ring: of_thread,
            flights: Slab::new(),
            pool: Pool::new(POOL_BYTES),
            wake_count: Box::new(0),
            is_armed: false,
        };
        if let Err(error) = worker.work() {
            // What the kernel still has under way reads into memory that must stay.
            tracing::error!("io_uring does not work any more, threads read and write from now on: {error}");
            let ring = worker.ring.clone();
            std::mem::forget(worker);
            ring.end();
        }
    });
    match spawned {
        Ok(_) => executors.set_ring(ring),
        Err(error) => tracing::info!("there is no thread for io_uring ({error})"),
    }
}

struct Worker {
    uring: IoUring,
    ring: Ring,
    flights: Slab<Flight>,
    pool: Pool,
    wake_count: Box<u64>,
    is_armed: bool,
}

/// A read or write that the kernel has.
struct Flight {
    run: Run,
    file: Arc<Backing>,
    offset: u64,
    length: usize,
    /// Bytes so far: the kernel may do less than was asked for.
    done: usize,
    what: What,
}

/// Told what was read, and what was written.
type ReadDone = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;
type WriteDone = Box<dyn FnOnce(io::Result<usize>) + Send>;

enum What {
    Read { buffer: Buffer, done: ReadDone },
    Write { data: crate::Buffer, flags: u32, done: WriteDone },
}

impl Worker {
    /// Works until it is closed and nothing is under way.
    fn work(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        loop {
            let (runs, is_closed) = {
                let mut given = self.ring.inner.given.lock().unwrap_or_else(PoisonError::into_inner);
                (std::mem::take(&mut given.runs), given.is_closed)
            };
            let has_more = !runs.is_empty();
            for run in runs {
                self.begin(run)?;
            }
            if is_closed && !has_more && self.flights.is_empty() {
                return Ok(());
            }
            if !self.is_armed {
                let read =
                    opcode::Read::new(Fd(self.ring.inner.wake.as_raw_fd()), (&raw mut *self.wake_count).cast(), 8);
                self.push(&read.build().user_data(WAKE))?;
                self.is_armed = true;
            }
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(error),
            }
            ended.extend(self.uring.completion().map(|entry| (entry.user_data(), entry.result())));
            for (number, result) in ended.drain(..) {
                match number {
                    WAKE => self.is_armed = false,
                    at => self.ended(at as usize, result)?,
                }
            }
        }
    }

    fn begin(&mut self, mut run: Run) -> io::Result<()> {
        let (file, offset, length, what) = match run.take() {
            Some(Job::Read { file, offset, length, done }) => {
                (file, offset, length, What::Read { buffer: self.pool.buffer(length.max(1)), done })
            }
            Some(Job::Write { file, offset, data, flags, done }) => {
                let length = data.len();
                (file, offset, length, What::Write { data, flags, done })
            }
            Some(Job::Call(call)) => {
                call();
                return Ok(());
            }
            None => return Ok(()),
        };
        let at = self.flights.insert(Flight { run, file, offset, length, done: 0, what });
        self.submit(at)
    }

    /// Asks the kernel for what is left of a flight.
    fn submit(&mut self, at: usize) -> io::Result<()> {
        let Some(flight) = self.flights.get_mut(at) else { return Ok(()) };
        let fd = Fd(flight.file.fd.as_raw_fd());
        let offset = flight.offset + flight.done as u64;
        let bytes = (flight.length - flight.done) as u32;
        let entry = match &mut flight.what {
            What::Read { buffer, .. } => {
                let to = buffer.get_mut(flight.done..).unwrap_or_default().as_mut_ptr();
                opcode::Read::new(fd, to, bytes).offset(offset).build()
            }
            What::Write { data, flags, .. } => {
                let from = data.get(flight.done..).unwrap_or_default().as_ptr();
                opcode::Write::new(fd, from, bytes).offset(offset).rw_flags(*flags as _).build()
            }
        };
        self.push(&entry.user_data(at as u64))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to - the buffer or data of a flight, the count of wakes - stays where it is until its completion has come: flights are
            // removed by that alone, and a worker that fails is never dropped.
            if unsafe { self.uring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            match self.uring.submit() {
                Ok(_) => {}
                // The kernel has no room at present.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                    thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The kernel is done with a flight, or with a part of it.
    fn ended(&mut self, at: usize, result: i32) -> io::Result<()> {
        let Some(flight) = self.flights.get_mut(at) else { return Ok(()) };
        if matches!(-result, libc::EINTR | libc::EAGAIN) {
            return self.submit(at);
        }
        flight.done += usize::try_from(result).unwrap_or(0);
        if result > 0 && flight.done < flight.length {
            return self.submit(at);
        }
        let mut flight = self.flights.remove(at);
        // What was written counts. Of what was read less than was asked for means the file's end.
        let is_write = matches!(flight.what, What::Write { .. });
        let is_over =
            result < 0 && flight.done > 0 && (is_write || flight.file.ends_at(Errno::from_raw_os_error(-result)));
        let error = (result < 0 && !is_over).then(|| io::Error::from_raw_os_error(-result));
        if error.is_some() {
            flight.run.has_failed();
        }
        let bytes = flight.done;
        match flight.what {
            What::Read { buffer, done } => {
                done(error.map_or_else(|| Ok(buffer.get(..bytes).unwrap_or_default()), Err));
            }
            What::Write { done, .. } => done(error.map_or(Ok(bytes), Err)),
        }
        Ok(())
    }
}
