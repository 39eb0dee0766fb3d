//! Scenarios for data: reads, writes, holes, allocation, copies, mappings, direct I/O, locks.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    CWD, FallocateFlags, FlockOperation, OFlags, SeekFrom, copy_file_range, fallocate, fdatasync, flock, fsync,
    ftruncate, seek,
};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::scene::{Scenario, Scene, digest, pattern};

const R: OFlags = OFlags::RDONLY;
const W: OFlags = OFlags::WRONLY;
const RW: OFlags = OFlags::RDWR;
const C: OFlags = OFlags::CREATE;
const PAGE: usize = 4096;

macro_rules! scenarios {
    ($($name:literal => $act:expr;)*) => { &[$(Scenario { name: $name, act: $act }),*] };
}

fn new(s: &mut Scene, name: &str) -> OwnedFd {
    s.open(name, RW | C).expect("it is created")
}

fn allocate(s: &mut Scene, f: &OwnedFd, flags: FallocateFlags, offset: u64, length: u64) {
    s.call(&format!("fallocate {flags:?} {offset} {length}"), fallocate(f, flags, offset, length));
    let found = rustix::fs::fstat(f).expect("it is open");
    s.see("size", found.st_size);
}

fn sought(s: &mut Scene, f: &OwnedFd, from: SeekFrom) {
    let place = seek(f, from).map_err(|error| error.raw_os_error());
    s.see(&format!("seek {from:?}"), place);
}

fn copied(s: &mut Scene, from: &OwnedFd, mut at: u64, to: &OwnedFd, mut into: u64, length: usize) {
    let mut done = 0;
    let result = loop {
        match copy_file_range(from, Some(&mut at), to, Some(&mut into), length - done) {
            Ok(0) => break Ok(done),
            Ok(more) => done += more,
            Err(error) => break Err(error.raw_os_error()),
        }
        if done == length {
            break Ok(done);
        }
    };
    s.see("copied", (result, at, into));
}

/// Maps a file and calls a function with its pages.
fn mapped(
    s: &mut Scene,
    f: &OwnedFd,
    length: usize,
    flags: MapFlags,
    protection: ProtFlags,
    act: impl FnOnce(&mut Scene, &mut [u8]),
) {
    // SAFETY: a new mapping at an address of the kernel's choice; it is unmapped below, after its
    // last use.
    let start = match unsafe { mmap(std::ptr::null_mut(), length, protection, flags, f, 0) } {
        Ok(start) => start,
        Err(error) => return s.see("mmap", error.raw_os_error()),
    };
    // SAFETY: the mapping has this length, and no other reference to it exists.
    let pages = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), length) };
    act(s, pages);
    if protection.contains(ProtFlags::WRITE) && flags.contains(MapFlags::SHARED) {
        // SAFETY: the range is inside the mapping.
        s.call("msync", unsafe { msync(start, length, MsyncFlags::SYNC) });
    }
    // SAFETY: the mapping is not used after this.
    s.call("munmap", unsafe { munmap(start, length) });
}

/// Returns memory aligned for direct I/O.
fn aligned(length: usize) -> hoistway_mount::Buffer {
    hoistway_mount::Buffer::from(&pattern(length)[..])
}

fn record_lock(
    f: &OwnedFd,
    command: libc::c_int,
    kind: libc::c_int,
    start: i64,
    length: i64,
) -> Result<(i32, i64, i64), i32> {
    let mut lock =
        libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: start, l_len: length, l_pid: 0 };
    // SAFETY: the lock structure outlives the call.
    let result = unsafe { libc::fcntl(f.as_raw_fd(), command, &raw mut lock) };
    if result < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        Ok((i32::from(lock.l_type), lock.l_start, lock.l_len))
    }
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "written and read" => |s| { let f = new(s, "a"); s.write(&f, b"hello"); s.pread(&f, 0, 10); s.pread(&f, 3, 10); s.pread(&f, 5, 10); s.pread(&f, 100, 10); };
    "much is written and read" => |s| { let f = new(s, "a"); s.write(&f, &pattern(3_000_000)); s.pread(&f, 0, 3_000_001); s.pread(&f, 1_234_567, 100_000); };
    "written in odd pieces" => |s| { let f = new(s, "a"); let data = pattern(100_000); let mut at = 0; for n in 0.. { let end = (at + 1 + n * 37 % 5000).min(data.len()); pwrite(&f, &data[at..end], at as u64).expect("it is written"); at = end; if at == data.len() { break } } s.pread(&f, 0, 100_001); };
    "written backwards" => |s| { let f = new(s, "a"); for n in (0..50u64).rev() { s.pwrite(&f, n * 3000, &pattern(3000)); } s.read("a"); };
    "overwritten in the middle" => |s| { s.file("a", &pattern(20_000)); let f = s.open("a", RW).expect("there"); s.pwrite(&f, 4090, b"over a page's edge"); s.read("a"); };
    "a write beyond the end leaves zeros" => |s| { let f = new(s, "a"); s.pwrite(&f, 10_000, b"far"); s.read("a"); s.pread(&f, 9_990, 20); };
    "written by a descriptor for writing alone" => |s| { s.file("a", &pattern(10_000)); let f = s.open("a", W).expect("there"); s.pwrite(&f, 5000, b"part of a page"); s.pread(&f, 0, 1); drop(f); s.read("a"); };
    "written by a descriptor for reading" => |s| { s.file("a", b"x"); let f = s.open("a", R).expect("there"); s.pwrite(&f, 0, b"y"); };
    "nothing is written" => |s| { let f = new(s, "a"); s.write(&f, b""); };
    "a directory is read" => |s| { s.directory("a"); let f = s.open("a", R).expect("there"); s.pread(&f, 0, 10); };
    "appended" => |s| { s.file("a", b"first "); let f = s.open("a", W | OFlags::APPEND).expect("there"); s.write(&f, b"second "); s.write(&f, b"third"); s.read("a"); };
    "appended by two" => |s| { let f = s.open("a", W | C | OFlags::APPEND).expect("there"); let g = s.open("a", W | OFlags::APPEND).expect("there"); for _ in 0..20 { s.write(&f, b"one "); s.write(&g, b"two "); } s.read("a"); };
    "appended after a seek" => |s| { s.file("a", b"12345"); let f = s.open("a", RW | OFlags::APPEND).expect("there"); sought(s, &f, SeekFrom::Start(1)); s.write(&f, b"X"); sought(s, &f, SeekFrom::Current(0)); s.pwrite(&f, 0, b"Y"); s.read("a"); };
    "appending is turned on" => |s| { s.file("a", b"12345"); let f = s.open("a", RW).expect("there"); s.call("fcntl", rustix::fs::fcntl_setfl(&f, OFlags::APPEND)); s.write(&f, b"6"); s.call("fcntl", rustix::fs::fcntl_setfl(&f, OFlags::empty())); s.pwrite(&f, 0, b"0"); s.read("a"); };
    "appended by many threads" => |s| {
        new(s, "a");
        let path = s.path("a");
        std::thread::scope(|scope| for n in 0..8u8 {
            let path = &path;
            scope.spawn(move || {
                let f = rustix::fs::openat(CWD, path, W | OFlags::APPEND, rustix::fs::Mode::empty()).expect("there");
                for _ in 0..50 { assert_eq!(rustix::io::write(&f, &[b'a' + n; 100]), Ok(100)); }
            });
        });
        let data = std::fs::read(&path).expect("there");
        let whole = data.chunks(100).filter(|piece| piece.iter().all(|byte| *byte == piece[0])).count();
        s.see("whole pieces", (data.len(), whole));
        std::fs::write(&path, b"").expect("there");
    };
    "cut as it is opened" => |s| { s.file("a", &pattern(9000)); s.open("a", W | OFlags::TRUNC); s.stat("a"); };
    "cut as it is opened to read" => |s| { s.file("a", &pattern(9000)); s.open("a", R | OFlags::TRUNC); s.stat("a"); };
    "cut while another has it open" => |s| { s.file("a", &pattern(9000)); let f = s.open("a", RW).expect("there"); s.pread(&f, 0, 9000); s.open("a", W | OFlags::TRUNC); s.pread(&f, 0, 9000); s.pwrite(&f, 5000, b"x"); s.read("a"); };
    "cut and made larger shows zeros" => |s| { let f = new(s, "a"); s.write(&f, &pattern(10_000)); s.call("cut", ftruncate(&f, 3_000)); s.call("larger", ftruncate(&f, 10_000)); s.pread(&f, 0, 10_000); };
    "cut to a page's edge" => |s| { let f = new(s, "a"); s.write(&f, &pattern(3 * PAGE)); s.call("cut", ftruncate(&f, PAGE as u64)); s.pwrite(&f, 2 * PAGE as u64, b"x"); s.pread(&f, 0, 3 * PAGE); };
    "synced" => |s| { let f = new(s, "a"); s.write(&f, b"x"); s.call("fsync", fsync(&f)); s.write(&f, b"y"); s.call("fdatasync", fdatasync(&f)); };
    "a directory is synced" => |s| { s.directory("d"); let f = s.open("d", R | OFlags::DIRECTORY).expect("there"); s.call("fsync", fsync(&f)); s.call("fdatasync", fdatasync(&f)); };
    "written synchronously" => |s| { let f = s.open("a", W | C | OFlags::SYNC).expect("there"); s.write(&f, &pattern(10_000)); let f = s.open("a", W | OFlags::DSYNC).expect("there"); s.pwrite(&f, 5_000, b"xyz"); s.read("a"); };
    "written with flags of one call" => |s| { let f = new(s, "a"); s.write(&f, b"12345"); let n = pwritev2(&f, &[std::io::IoSlice::new(b"6")], 0, ReadWriteFlags::APPEND).map_err(|e| e.raw_os_error()); s.see("append", n); let n = pwritev2(&f, &[std::io::IoSlice::new(b"x")], 0, ReadWriteFlags::DSYNC).map_err(|e| e.raw_os_error()); s.see("dsync", n); s.read("a"); };
    "seeking" => |s| { s.file("a", &pattern(100)); let f = s.open("a", R).expect("there"); sought(s, &f, SeekFrom::End(-10)); sought(s, &f, SeekFrom::Current(5)); sought(s, &f, SeekFrom::Start(1000)); sought(s, &f, SeekFrom::End(10)); sought(s, &f, SeekFrom::Current(-2000)); };
    "holes and data" => |s| { let f = new(s, "a"); s.pwrite(&f, 1 << 20, &pattern(65_536)); s.pwrite(&f, 4 << 20, &pattern(65_536)); s.call("fsync", fsync(&f)); for at in [0, 1 << 20, (1 << 20) + 100, (1 << 20) + 65_536, 3 << 20, 4 << 20, (4 << 20) + 65_535] { sought(s, &f, SeekFrom::Data(at)); sought(s, &f, SeekFrom::Hole(at)); } sought(s, &f, SeekFrom::Data((4 << 20) + 65_536)); sought(s, &f, SeekFrom::Hole(5 << 20)); };
    "holes of an empty file" => |s| { let f = new(s, "a"); sought(s, &f, SeekFrom::Data(0)); sought(s, &f, SeekFrom::Hole(0)); };
    "a hole that is the whole file" => |s| { let f = new(s, "a"); s.call("larger", ftruncate(&f, 1 << 20)); sought(s, &f, SeekFrom::Data(0)); sought(s, &f, SeekFrom::Hole(0)); s.pread(&f, 0, 100_000); };
    "space is allocated" => |s| { let f = new(s, "a"); allocate(s, &f, FallocateFlags::empty(), 0, 100_000); s.pread(&f, 0, 100_000); s.pwrite(&f, 50_000, b"x"); };
    "space is allocated beyond the end" => |s| { let f = new(s, "a"); s.write(&f, b"x"); allocate(s, &f, FallocateFlags::KEEP_SIZE, 0, 1 << 20); s.read("a"); let blocks = rustix::fs::fstat(&f).expect("open").st_blocks; s.see("blocks", blocks >= 2048); };
    "space is allocated in the middle" => |s| { let f = new(s, "a"); s.write(&f, &pattern(10_000)); allocate(s, &f, FallocateFlags::empty(), 5_000, 20_000); s.read("a"); };
    "a hole is punched" => |s| { let f = new(s, "a"); s.write(&f, &pattern(100_000)); s.pread(&f, 0, 100_000); allocate(s, &f, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 10_000, 50_000); s.pread(&f, 0, 100_000); s.call("fsync", fsync(&f)); sought(s, &f, SeekFrom::Hole(0)); sought(s, &f, SeekFrom::Data(20_000)); };
    "a hole is punched beyond the end" => |s| { let f = new(s, "a"); s.write(&f, b"x"); allocate(s, &f, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 10_000, 10_000); s.read("a"); };
    "a hole without keeping the size" => |s| { let f = new(s, "a"); s.write(&f, b"x"); allocate(s, &f, FallocateFlags::PUNCH_HOLE, 0, 10_000); };
    "allocation by a descriptor for reading" => |s| { s.file("a", b"x"); let f = s.open("a", R).expect("there"); allocate(s, &f, FallocateFlags::empty(), 0, 100); };
    "allocation of nothing" => |s| { let f = new(s, "a"); allocate(s, &f, FallocateFlags::empty(), 0, 0); };
    "a copy within the kernel" => |s| { s.file("a", &pattern(3_000_000)); let (f, g) = (s.open("a", R).expect("there"), new(s, "b")); copied(s, &f, 0, &g, 0, 3_000_000); s.read("b"); };
    "a copy of a part" => |s| { s.file("a", &pattern(100_000)); s.file("b", &[7; 50_000]); let (f, g) = (s.open("a", R).expect("there"), s.open("b", RW).expect("there")); copied(s, &f, 12_345, &g, 6_789, 20_000); s.read("b"); };
    "a copy beyond the end" => |s| { s.file("a", b"short"); let (f, g) = (s.open("a", R).expect("there"), new(s, "b")); copied(s, &f, 0, &g, 100, 1_000); copied(s, &f, 50, &g, 0, 10); s.read("b"); };
    "a copy within a file" => |s| { s.file("a", &pattern(100_000)); let f = s.open("a", RW).expect("there"); copied(s, &f, 0, &f, 50_000, 20_000); s.read("a"); copied(s, &f, 0, &f, 10_000, 20_000); };
    "a copy of what was just written" => |s| { let (f, g) = (new(s, "a"), new(s, "b")); s.write(&f, &pattern(70_000)); copied(s, &f, 0, &g, 0, 70_000); s.pread(&g, 0, 70_000); };
    "a copy into a descriptor for reading" => |s| { s.file("a", b"x"); s.file("b", b"y"); let (f, g) = (s.open("a", R).expect("there"), s.open("b", R).expect("there")); copied(s, &f, 0, &g, 0, 1); };
    "cp copies a tree" => |s| {
        s.directory("from");
        for n in 0..20usize { s.file(&format!("from/{n}"), &pattern(n * 10_000)); }
        s.symlink("3", "from/link");
        let status = std::process::Command::new("cp").arg("-a").arg(s.path("from")).arg(s.path("to")).status().expect("cp");
        s.see("cp", status.success());
    };
    "a mapping is read" => |s| { s.file("a", &pattern(10_000)); let f = s.open("a", R).expect("there"); mapped(s, &f, 10_000, MapFlags::SHARED, ProtFlags::READ, |s, pages| s.see("pages", digest(pages))); };
    "a mapping is written" => |s| { s.file("a", &pattern(3 * PAGE)); let f = s.open("a", RW).expect("there"); mapped(s, &f, 3 * PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |s, pages| { pages[5000..5005].copy_from_slice(b"MAPPD"); s.see("pages", digest(pages)); }); s.pread(&f, 4990, 20); s.read("a"); };
    "a mapping of a file that ends within a page" => |s| { s.file("a", &pattern(5000)); let f = s.open("a", RW).expect("there"); mapped(s, &f, 2 * PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |_, pages| { pages[4999] = b'!'; pages[6000] = b'?'; }); s.read("a"); s.stat("a"); };
    "a private mapping is written" => |s| { s.file("a", &pattern(5000)); let f = s.open("a", R).expect("there"); mapped(s, &f, 5000, MapFlags::PRIVATE, ProtFlags::READ | ProtFlags::WRITE, |s, pages| { pages[0] = b'!'; s.see("page", pages[0]); }); s.pread(&f, 0, 3); };
    "a mapping sees what is written" => |s| { s.file("a", &pattern(PAGE)); let f = s.open("a", RW).expect("there"); let g = f.try_clone().expect("a copy"); mapped(s, &f, PAGE, MapFlags::SHARED, ProtFlags::READ, |s, pages| { s.see("before", digest(&pages[..10])); s.pwrite(&g, 3, b"xyz"); s.see("after", digest(&pages[..10])); }); };
    "what is read sees a mapping" => |s| { s.file("a", &pattern(PAGE)); let f = s.open("a", RW).expect("there"); let g = s.open("a", R).expect("there"); mapped(s, &f, PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |s, pages| { pages[10..13].copy_from_slice(b"map"); s.pread(&g, 8, 8); }); };
    "a mapping written by a file that was opened to append" => |s| { s.file("a", &pattern(2 * PAGE)); let f = s.open("a", RW | OFlags::APPEND).expect("there"); mapped(s, &f, 2 * PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |_, pages| pages[100] = b'!'); s.stat("a"); s.read("a"); };
    "a mapping for writing of a file for reading" => |s| { s.file("a", &pattern(PAGE)); let f = s.open("a", R).expect("there"); mapped(s, &f, PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |_, _| ()); };
    "a mapping lives when its file is closed and removed" => |s| { s.file("a", &pattern(PAGE)); let f = s.open("a", RW).expect("there"); let g = f.try_clone().expect("a copy"); mapped(s, &f, PAGE, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |s, pages| { s.unlink("a"); pages[0] = b'!'; s.see("page", digest(&pages[..8])); }); s.pread(&g, 0, 4); };
    "direct reads" => |s| { s.file("a", &pattern(100_000)); if let Some(f) = s.open("a", R | OFlags::DIRECT) { for (at, length) in [(0, 4096), (8192, 65_536), (98_304, 4096), (102_400, 4096), (0, 102_400)] { let mut buffer = aligned(length); let n = pread(&f, &mut buffer[..], at).map_err(|e| e.raw_os_error()); s.see(&format!("direct {at} {length}"), n.map(|n| digest(&buffer[..n]))); } } };
    "direct writes" => |s| { if let Some(f) = s.open("a", RW | C | OFlags::DIRECT) { for (at, length) in [(0, 4096), (65_536, 65_536), (4096, 8192)] { let n = pwrite(&f, &aligned(length), at).map_err(|e| e.raw_os_error()); s.see(&format!("direct {at} {length}"), n); } s.call("fsync", fsync(&f)); } s.read("a"); };
    "direct I/O at a wrong place" => |s| { s.file("a", &pattern(100_000)); if let Some(f) = s.open("a", RW | OFlags::DIRECT) { let mut buffer = aligned(4096); let n = pread(&f, &mut buffer[..], 100).map_err(|e| e.raw_os_error()); s.see("read", n); let n = pwrite(&f, &buffer[..4096], 100).map_err(|e| e.raw_os_error()); s.see("write", n); } };
    "direct I/O of a wrong length" => |s| { s.file("a", &pattern(100_000)); if let Some(f) = s.open("a", RW | OFlags::DIRECT) { let mut buffer = aligned(4096); let n = pread(&f, &mut buffer[..100], 0).map_err(|e| e.raw_os_error()); s.see("read", n); let n = pwrite(&f, &buffer[..100], 0).map_err(|e| e.raw_os_error()); s.see("write", n); } };
    "direct and buffered I/O see each other" => |s| { s.file("a", &pattern(65_536)); s.read("a"); if let Some(f) = s.open("a", RW | OFlags::DIRECT) { let n = pwrite(&f, &[b'D'; 4096].repeat(2), 4096); let aligned_write = match n { Err(Errno::INVAL) => { let mut buffer = aligned(8192); buffer.fill(b'D'); pwrite(&f, &buffer, 4096) } n => n }; s.see("write", aligned_write.map_err(|e| e.raw_os_error())); s.read("a"); let g = s.open("a", RW).expect("there"); s.pwrite(&g, 5000, b"buffered"); let mut buffer = aligned(4096); let n = pread(&f, &mut buffer[..], 4096).map_err(|e| e.raw_os_error()); s.see("direct", n.map(|n| digest(&buffer[..n]))); } };
    "direct writes that append" => |s| { if let Some(f) = s.open("a", W | C | OFlags::DIRECT | OFlags::APPEND) { for _ in 0..3 { let n = rustix::io::write(&f, &aligned(4096)).map_err(|e| e.raw_os_error()); s.see("write", n); } } s.read("a"); };
    "direct and synchronous writes" => |s| { if let Some(f) = s.open("a", W | C | OFlags::DIRECT | OFlags::SYNC) { let n = pwrite(&f, &aligned(8192), 0).map_err(|e| e.raw_os_error()); s.see("write", n); } s.read("a"); };
    "a mapping of a file for direct I/O" => |s| { s.file("a", &pattern(5000)); if let Some(f) = s.open("a", RW | OFlags::DIRECT) { mapped(s, &f, 5000, MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE, |s, pages| { s.see("pages", digest(pages)); pages[4998] = b'!'; }); } s.read("a"); };
    "whole files are locked" => |s| { s.file("a", b""); let (f, g) = (s.open("a", RW).expect("there"), s.open("a", RW).expect("there")); s.call("exclusive", flock(&f, FlockOperation::NonBlockingLockExclusive)); s.call("the other", flock(&g, FlockOperation::NonBlockingLockShared)); s.call("unlock", flock(&f, FlockOperation::Unlock)); s.call("the other", flock(&g, FlockOperation::NonBlockingLockShared)); s.call("shared", flock(&f, FlockOperation::NonBlockingLockShared)); };
    "a lock is given up when its file is closed" => |s| { s.file("a", b""); let (f, g) = (s.open("a", RW).expect("there"), s.open("a", RW).expect("there")); s.call("exclusive", flock(&f, FlockOperation::NonBlockingLockExclusive)); drop(f); s.call("the other", flock(&g, FlockOperation::NonBlockingLockExclusive)); };
    "ranges of a file are locked" => |s| { s.file("a", b""); let (f, g) = (s.open("a", RW).expect("there"), s.open("a", RW).expect("there")); let r = record_lock(&f, libc::F_OFD_SETLK, libc::F_WRLCK, 10, 10); s.see("lock", r); let r = record_lock(&g, libc::F_OFD_SETLK, libc::F_WRLCK, 15, 1); s.see("within", r); let r = record_lock(&g, libc::F_OFD_SETLK, libc::F_WRLCK, 20, 5); s.see("beside", r); let r = record_lock(&g, libc::F_OFD_GETLK, libc::F_RDLCK, 0, 0); s.see("query", r); let r = record_lock(&f, libc::F_OFD_SETLK, libc::F_UNLCK, 0, 0); s.see("unlock", r); let r = record_lock(&g, libc::F_OFD_SETLK, libc::F_WRLCK, 15, 1); s.see("within", r); };
    "a process waits for a lock" => |s| {
        s.file("a", b"");
        let f = s.open("a", RW).expect("there");
        s.call("lock", flock(&f, FlockOperation::LockExclusive));
        let path = s.path("a");
        let (waits, released) = (AtomicBool::new(false), AtomicBool::new(false));
        let waited = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let g = rustix::fs::openat(CWD, &path, RW, rustix::fs::Mode::empty()).expect("there");
                waits.store(true, Ordering::SeqCst);
                flock(&g, FlockOperation::LockExclusive).map(|()| released.load(Ordering::SeqCst))
            });
            crate::support::wait_until("the other thread locks", || waits.load(Ordering::SeqCst));
            // A lock that does not wait is taken in this time.
            std::thread::sleep(std::time::Duration::from_millis(60));
            released.store(true, Ordering::SeqCst);
            flock(&f, FlockOperation::Unlock).expect("it was locked");
            waiter.join().expect("no panic")
        });
        s.see("it waited", waited.map_err(|error| error.raw_os_error()));
    };
    "read ahead and advice" => |s| { s.file("a", &pattern(500_000)); let f = s.open("a", R).expect("there"); for advice in [rustix::fs::Advice::Sequential, rustix::fs::Advice::WillNeed, rustix::fs::Advice::DontNeed, rustix::fs::Advice::Random] { s.call(&format!("{advice:?}"), rustix::fs::fadvise(&f, 0, None, advice)); s.pread(&f, 100_000, 300_000); } };
    "a range is brought to the disk" => |s| { let f = new(s, "a"); s.write(&f, &pattern(100_000)); let result = unsafe_sync_range(&f); s.see("sync_file_range", result); };
    "duplicates share a place" => |s| { s.file("a", b"0123456789"); let f = s.open("a", R).expect("there"); let g = f.try_clone().expect("a copy"); let mut b = [0; 4]; rustix::io::read(&f, &mut b[..]).expect("read"); rustix::io::read(&g, &mut b[..]).expect("read"); s.see("then", b); };
    "a file is read by lines while it grows" => |s| { let f = new(s, "log"); let g = s.open("log", R).expect("there"); let mut seen = 0; for n in 0..50 { s.write(&f, format!("line {n}\n").as_bytes()); let mut b = [0; 100]; seen += rustix::io::read(&g, &mut b[..]).expect("read"); } s.see("seen", seen); };
];

fn unsafe_sync_range(f: &OwnedFd) -> Result<(), Option<i32>> {
    // SAFETY: the arguments are integers.
    let result = unsafe {
        libc::sync_file_range(f.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error()) }
}
