//! Compares backends with a model of their contents, on both engines, and checks the errors of
//! opening.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use hoistway_config::BackendConfig;
use hoistway_qos::{Begin, IoError, IoId, MediumRequest, RequestOp};
use hoistway_reactor::{Allocation, Engine, Event, Options, Threads, Uring};

use crate::file::WHILE_LOCKED;
use crate::{Backend, BackendError, DeviceId, IoOutput, IoTag, Started};

const DEVICE: DeviceId = DeviceId(0);

/// A backend on an engine.
struct TestBackend<E: Engine> {
    engine: E,
    backend: Backend,
    ops: HashMap<IoId, RequestOp>,
    next: u32,
}

impl<E: Engine> TestBackend<E> {
    fn new(mut engine: E, config: &BackendConfig) -> Result<TestBackend<E>, BackendError> {
        let backend = Backend::open(DEVICE, config, &mut engine)?;
        Ok(TestBackend { engine, backend, ops: HashMap::new(), next: 1 })
    }

    /// Begins an operation; a completed one is added to the results.
    fn begin(&mut self, op: RequestOp, offset: u64, length: u64, data: Option<&[u8]>) -> (IoId, Started) {
        let io = IoId::of_number(self.next);
        self.next += 1;
        let data = data.map(|data| {
            let mut buffer = self.engine.buffer(data.len());
            buffer[..data.len()].copy_from_slice(data);
            buffer
        });
        let durable =
            io.number().is_multiple_of(7) && !matches!(op, RequestOp::Read | RequestOp::Status | RequestOp::Cache);
        let request = MediumRequest { io, ticket: 0, op, offset, length, durable, data };
        let started = self.backend.begin(&mut self.engine, DEVICE, request);
        if matches!(started, Begin::Pending) {
            self.ops.insert(io, op);
        }
        (io, started)
    }

    /// Waits for the next completion.
    fn next(&mut self) -> (IoId, Result<IoOutput, IoError>) {
        let end_ns = self.engine.now_ns() + PATIENCE.as_nanos() as u64;
        let mut events = Vec::new();
        loop {
            assert!(self.engine.now_ns() < end_ns, "nothing ends");
            // One event at a time, since one completion is returned at a time.
            if events.is_empty() {
                self.engine.turn(Some(end_ns), &mut events).expect("a turn");
            }
            let mut ended = None;
            for event in events.drain(..) {
                let Event::Done { tag, done } = event else { continue };
                let tag = IoTag::of(tag);
                if let Begin::Done(result) = self.backend.finish(&mut self.engine, tag, self.ops[&tag.io], done) {
                    self.ops.remove(&tag.io);
                    assert!(ended.is_none(), "this is for one operation at a time");
                    ended = Some((tag.io, result));
                }
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    fn run(&mut self, op: RequestOp, offset: u64, length: u64, data: Option<&[u8]>) -> Result<IoOutput, IoError> {
        match self.begin(op, offset, length, data) {
            (_, Begin::Done(result)) => result,
            (_, Begin::Pending) => self.next().1,
        }
    }

    fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        bytes(self.run(RequestOp::Read, offset, length, None).expect("a read"), length)
    }

    /// Begins several operations, and waits for all of them.
    fn run_all(&mut self, works: &[(RequestOp, u64, Vec<u8>)]) {
        for (op, offset, data) in works {
            let with = (*op == RequestOp::Write).then_some(data.as_slice());
            if let (_, Begin::Done(result)) = self.begin(*op, *offset, data.len() as u64, with) {
                result.expect("the operation succeeds");
            }
        }
        let mut events = Vec::new();
        while !self.ops.is_empty() {
            self.engine.turn(None, &mut events).expect("a turn");
            for event in events.drain(..) {
                let Event::Done { tag, done } = event else { continue };
                let tag = IoTag::of(tag);
                if let Begin::Done(result) = self.backend.finish(&mut self.engine, tag, self.ops[&tag.io], done) {
                    self.ops.remove(&tag.io);
                    result.expect("the operation succeeds");
                }
            }
        }
    }
}

fn bytes(output: IoOutput, length: u64) -> Vec<u8> {
    let length = length as usize;
    match output {
        IoOutput::Buffer(buffer) => buffer[..length].to_vec(),
        IoOutput::Zeroes => vec![0; length],
        IoOutput::Shared(shared) => {
            assert_eq!(shared.len(), length);
            let mut bytes = vec![1; length];
            assert_eq!(shared.copy_to(&mut bytes), length);
            bytes
        }
        other => panic!("a read returns {other:?}"),
    }
}

fn options() -> Options {
    Options { signals: false, pool_bytes: 4 << 20, receive_buffers: 2, ..Options::default() }
}

fn file(path: &Path, direct: Option<bool>) -> BackendConfig {
    BackendConfig::File { path: path.into(), direct, read_only: false, force_in_use: false }
}

fn threads(config: &BackendConfig) -> Result<TestBackend<Threads>, BackendError> {
    TestBackend::new(threads_engine(), config)
}

fn threads_engine() -> Threads {
    Threads::new(&options()).expect("an engine")
}

/// The time after which a state that a test waits for does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a file again that was open in this process. A process that another test starts has the
/// former descriptor, and with it the lock, until it runs its program.
fn reopened<E: Engine>(engine: impl Fn() -> E, config: &BackendConfig) -> TestBackend<E> {
    let begun = Instant::now();
    loop {
        match TestBackend::new(engine(), config) {
            Ok(backend_under_test) => return backend_under_test,
            Err(BackendError::Locked { .. }) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("it is free again: {error}"),
        }
    }
}

/// Waits until no process has a lock of a file.
fn await_unlocked(path: &Path) {
    let file = std::fs::File::open(path).expect("the file");
    let begun = Instant::now();
    while rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the lock stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The lock would stay with a copy of the descriptor.
    rustix::fs::flock(&file, rustix::fs::FlockOperation::Unlock).expect("unlocked");
}

fn temporary(bytes: u64) -> tempfile::NamedTempFile {
    let temporary = tempfile::Builder::new().prefix("hoistway-backend").tempfile().expect("a temporary file");
    temporary.as_file().set_len(bytes).expect("a length");
    temporary
}

const SIZE: u64 = 1 << 20;

/// Executes random operations, one after the other, on a backend and on a model of it.
fn compare_with_model<E: Engine>(mut backend_under_test: TestBackend<E>, seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let size = backend_under_test.backend.size();
    let mut model = vec![0u8; size as usize];
    for round in 0..600u32 {
        let length = 1 + random.random_range(0..size.min(200_000));
        let offset = random.random_range(0..=size - length);
        // Half of them are aligned.
        let (offset, length) = match round % 2 {
            0 => (offset, length),
            _ => (offset / 4096 * 4096, (length / 4096 * 4096).max(512)),
        };
        let range = offset as usize..(offset + length) as usize;
        let data: Vec<u8> = (0..length).map(|at| (at as u32 ^ round) as u8).collect();
        match random.random_range(0..8) {
            0..=2 => {
                let done = backend_under_test.run(RequestOp::Write, offset, length, Some(&data));
                assert!(matches!(done, Ok(IoOutput::Nothing)), "{done:?}");
                model[range].copy_from_slice(&data);
            }
            3 => {
                let op = RequestOp::Zero { punch: random.random_range(0..2) == 0 };
                let done = backend_under_test.run(op, offset, length, None);
                assert!(matches!(done, Ok(IoOutput::Nothing)), "{done:?}");
                model[range].fill(0);
            }
            4 => {
                let done = backend_under_test.run(RequestOp::Trim, offset, length, None);
                assert!(matches!(done, Ok(IoOutput::Nothing)), "{done:?}");
                // A trimmed range may read as anything; nothing outside of it has changed.
                let now = backend_under_test.read(0, size);
                assert!(now[..range.start] == model[..range.start] && now[range.end..] == model[range.end..]);
                model = now;
            }
            5 => {
                let done = backend_under_test.run(RequestOp::Status, offset, length, None).expect("a status");
                let IoOutput::Extents(extents) = done else { panic!("a status query returns {done:?}") };
                let mut at = offset as usize;
                for extent in extents {
                    let end = at + extent.length as usize;
                    assert!(extent.length > 0 && end <= range.end);
                    assert!(!extent.hole || model[at..end].iter().all(|byte| *byte == 0), "a hole with data in it");
                    at = end;
                }
                assert!(at > range.start);
            }
            _ => assert!(
                backend_under_test.read(offset, length) == model[range],
                "round {round}, {length} bytes at {offset}"
            ),
        }
    }
    assert!(matches!(backend_under_test.run(RequestOp::Flush, 0, 0, None), Ok(IoOutput::Nothing)));
    assert!(backend_under_test.read(0, size) == model);
}

#[test]
fn memory_keeps_data() {
    compare_with_model(threads(&BackendConfig::Memory { bytes: SIZE }).expect("memory"), 1);
    compare_with_model(threads(&BackendConfig::Memory { bytes: SIZE - 12_345 }).expect("memory"), 2);
}

#[test]
fn files_keep_data_on_every_engine_with_and_without_direct_io() {
    for (seed, (direct, size)) in
        [(Some(false), SIZE), (Some(false), SIZE - 12_345), (None, SIZE), (None, SIZE - 512)].into_iter().enumerate()
    {
        let temporary = temporary(size);
        let config = file(temporary.path(), direct);
        compare_with_model(threads(&config).expect("a file"), seed as u64);
        temporary.as_file().set_len(0).expect("emptied");
        temporary.as_file().set_len(size).expect("a length");
        match Uring::new(&options()) {
            Ok(_) => {
                let uring = reopened(|| Uring::new(&options()).expect("an engine"), &config);
                compare_with_model(uring, 10 + seed as u64);
            }
            Err(error) => eprintln!("skipped: io_uring is not available: {error}"),
        }
        assert_eq!(temporary.as_file().metadata().expect("its length").len(), size, "its length never changes");
    }
}

/// Adjacent writes of 100 bytes, all in flight at once: writes that share a unit of direct I/O must
/// not undo each other.
#[test]
fn concurrent_unaligned_writes_do_not_undo_each_other() {
    for seed in 0..20 {
        let temporary = temporary(SIZE);
        let mut backend_under_test = threads(&file(temporary.path(), None)).expect("a file");
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut works = Vec::new();
        let mut at = random.random_range(0..512);
        let mut model = vec![0u8; SIZE as usize];
        while works.len() < 60 {
            let length = if random.random_range(0..4) == 0 { 4096 } else { random.random_range(1..700) };
            let fill = works.len() as u8 + 1;
            let zero = random.random_range(0..5) == 0;
            let op = if zero { RequestOp::Zero { punch: true } } else { RequestOp::Write };
            if !zero {
                model[at..at + length].fill(fill);
            }
            works.push((op, at as u64, vec![fill; length]));
            at += length;
        }
        for slot in 0..works.len() {
            works.swap(slot, random.random_range(0..60));
        }
        backend_under_test.run_all(&works);
        assert!(backend_under_test.read(0, SIZE) == model, "seed {seed}");
    }
}

#[test]
fn null_reads_zeroes_and_keeps_no_data() {
    let mut backend_under_test = threads(&BackendConfig::Null { bytes: 1 << 50 }).expect("nothing");
    assert!(matches!(backend_under_test.run(RequestOp::Write, 1 << 49, 5, Some(b"hello")), Ok(IoOutput::Nothing)));
    assert_eq!(backend_under_test.read(1 << 49, 5), [0; 5]);
    let status = backend_under_test.run(RequestOp::Status, 0, 1 << 50, None).expect("a status");
    assert!(
        matches!(&status, IoOutput::Extents(extents) if extents[..] == [Allocation { length: 1 << 50, hole: true }])
    );
}

#[test]
fn a_range_beyond_the_end_is_an_error() {
    let temporary = temporary(8192);
    for config in
        [BackendConfig::Memory { bytes: 8192 }, BackendConfig::Null { bytes: 8192 }, file(temporary.path(), None)]
    {
        let mut backend_under_test = threads(&config).expect("a backend");
        assert_eq!(backend_under_test.backend.size(), 8192);
        assert!(matches!(backend_under_test.run(RequestOp::Read, 8000, 193, None), Err(IoError::InvalidArgument)));
        assert!(matches!(backend_under_test.run(RequestOp::Read, u64::MAX, 2, None), Err(IoError::InvalidArgument)));
        assert!(matches!(backend_under_test.run(RequestOp::Write, 8192, 1, Some(b"x")), Err(IoError::NoSpace)));
        assert!(matches!(
            backend_under_test.run(RequestOp::Zero { punch: true }, 1, u64::MAX, None),
            Err(IoError::NoSpace)
        ));
        assert!(matches!(
            backend_under_test.run(RequestOp::Write, 0, 5000, Some(b"short")),
            Err(IoError::InvalidArgument)
        ));
        assert_eq!(backend_under_test.read(8000, 192), [0; 192]);
    }
}

#[test]
fn trimmed_memory_is_a_hole() {
    let mut backend_under_test = threads(&BackendConfig::Memory { bytes: 300 << 16 }).expect("memory");
    let extents = |backend_under_test: &mut TestBackend<Threads>| match backend_under_test.run(
        RequestOp::Status,
        0,
        300 << 16,
        None,
    ) {
        Ok(IoOutput::Extents(extents)) => {
            extents.iter().map(|extent| (extent.length >> 16, extent.hole)).collect::<Vec<_>>()
        }
        other => panic!("a status query returns {other:?}"),
    };
    assert_eq!(extents(&mut backend_under_test), [(300, true)]);
    for block in [0, 1, 63, 64, 65, 200, 299] {
        backend_under_test.run(RequestOp::Write, (block << 16) + 5, 1, Some(b"x")).expect("written");
    }
    let before = [(2, false), (61, true), (3, false), (134, true), (1, false), (98, true), (1, false)];
    assert_eq!(extents(&mut backend_under_test), before);
    backend_under_test.run(RequestOp::Trim, 64 << 16, 200 << 16, None).expect("trimmed");
    assert_eq!(extents(&mut backend_under_test), [(2, false), (61, true), (1, false), (235, true), (1, false)]);
    assert!(matches!(backend_under_test.run(RequestOp::Read, 65 << 16, 4096, None), Ok(IoOutput::Zeroes)));
}

/// A second program cuts the file off while the backend has it open.
#[test]
fn data_that_were_cut_off_are_errors() {
    for direct in [Some(false), None] {
        let temporary = temporary(SIZE);
        let mut backend_under_test = threads(&file(temporary.path(), direct)).expect("a file");
        backend_under_test.run(RequestOp::Write, 0, SIZE, Some(&vec![7; SIZE as usize])).expect("written");
        temporary.as_file().set_len(8192).expect("a length");
        let mut run = |op, offset, length| {
            let data = vec![1; length as usize];
            let data = (op == RequestOp::Write).then_some(data.as_slice());
            backend_under_test.run(op, offset, length, data).map(|_| ())
        };
        assert_eq!(run(RequestOp::Read, 8192, 512), Err(IoError::Io));
        assert_eq!(run(RequestOp::Read, 8000, 300), Err(IoError::Io));
        assert_eq!(run(RequestOp::Read, 4096, 4096), Ok(()));
        for op in [RequestOp::Write, RequestOp::Zero { punch: true }, RequestOp::Trim] {
            assert_eq!(run(op, SIZE - 4096, 4096), Err(IoError::Io), "{op:?}");
        }
        assert_eq!(temporary.as_file().metadata().expect("its length").len(), 8192);
        assert_eq!(run(RequestOp::Flush, 0, 0), Err(IoError::Io));
    }
}

#[test]
fn a_read_only_file_is_not_written() {
    let temporary = temporary(4096);
    temporary.as_file().write_all_at(b"contents", 0).expect("written");
    let config =
        BackendConfig::File { path: temporary.path().into(), direct: None, read_only: true, force_in_use: false };
    let mut backend_under_test = threads(&config).expect("a file");
    assert!(backend_under_test.backend.abilities().read_only && !backend_under_test.backend.abilities().trim);
    assert!(matches!(backend_under_test.run(RequestOp::Write, 0, 1, Some(b"x")), Err(IoError::NotPermitted)));
    assert!(matches!(backend_under_test.run(RequestOp::Flush, 0, 0, None), Ok(IoOutput::Nothing)));
    assert_eq!(backend_under_test.read(0, 8), b"contents");
    // Two readers may share the file; a writer is refused.
    let _second = threads(&config).expect("a second reader");
    let writer = threads(&file(temporary.path(), None)).err().expect("no writer beside readers");
    assert!(matches!(writer, BackendError::Locked { .. }));
}

#[test]
fn a_file_has_one_writer() {
    let temporary = temporary(4096);
    let first = threads(&file(temporary.path(), None)).expect("a file");
    let error = threads(&file(temporary.path(), None)).err().expect("it is in use").to_string();
    assert!(error.starts_with(&format!("{}: in use by another", temporary.path().display())), "{error}");
    drop(first);
    reopened(threads_engine, &file(temporary.path(), None));
}

#[test]
fn the_lock_of_a_dead_process_is_awaited() {
    let temporary = temporary(4096);
    // The shell and `flock` end at once; `cat` keeps the file open, and with it the lock, until its
    // input ends.
    let sequence = "exec 3<>\"$1\" 4<&0; flock -x 3 || exit 9; cat 3<&3 <&4 >/dev/null 2>&1 &";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", sequence, "sh"]).arg(temporary.path()).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let input = shell.stdin.take();
    if !shell.wait().is_ok_and(|status| status.success()) {
        eprintln!("skipped: flock(1) is not installed");
        return;
    }
    let path = temporary.path().to_owned();
    WHILE_LOCKED.set(Some(Box::new(move || {
        drop(input);
        await_unlocked(&path);
    })));
    threads(&file(temporary.path(), None)).expect("the lock goes when the last of a dead process has ended");
    assert!(WHILE_LOCKED.take().is_none(), "the file was locked at first");
}

#[test]
fn errors_of_opening_have_path_and_cause() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = |path: &Path, direct| threads(&file(path, direct)).err().expect("it cannot be opened").to_string();
    let missing = directory.path().join("missing");
    assert_eq!(error(&missing, None), format!("{}: No such file or directory (os error 2)", missing.display()));
    assert!(error(directory.path(), None).contains("this is a directory; a file or a block device is needed"));
    assert!(error(Path::new("/dev/null"), None).contains("this is a character device"));
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    assert!(error(&pipe, None).contains("this is a pipe"), "{}", error(&pipe, None));
    let empty = temporary(0);
    assert!(error(empty.path(), None).contains("its size is 0"));
    let odd = temporary(1000);
    let odd_direct = error(odd.path(), Some(true));
    assert!(odd_direct.contains("direct I/O is not possible"), "{odd_direct}");
    assert!(Backend::memory(u64::MAX).is_err());
}

#[test]
fn a_file_on_tmpfs_is_detected() {
    let Ok(temporary) = tempfile::Builder::new().prefix("hoistway-backend").tempfile_in("/dev/shm") else {
        return eprintln!("skipped: there is no /dev/shm");
    };
    temporary.as_file().set_len(SIZE).expect("a length");
    let backend_under_test = threads(&file(temporary.path(), None)).expect("a file");
    assert!(!backend_under_test.backend.rotational());
    assert_eq!(
        backend_under_test.backend.default_depth(),
        crate::depth::TMPFS,
        "{}",
        backend_under_test.backend.describe()
    );
    drop(backend_under_test);
    compare_with_model(reopened(threads_engine, &file(temporary.path(), None)), 5);
}
