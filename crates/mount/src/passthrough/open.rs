//! Opening files, and what is done to an open one besides reading and writing it.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use fuser::{BackingId, FileHandle, FopenFlags, ReplyCreate, ReplyEmpty, ReplyLseek, ReplyOpen};
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags, Statx, fadvise, fallocate, fdatasync, fsync, openat};
use rustix::io::Errno;

use super::files::OpenFile;
use super::identity::{Mask, Rights, set_umask};
use super::look::Entry;
use super::nodes::Node;
use super::places::look_at;
use super::{Through, WriteBack, errno};
use crate::backing::Backing;
use crate::gate::{Ask, Asker, Entered, Gate, Job, Operation};

/// What the kernel does itself, or what is done with each write: it may come from a mapping of a file that was opened to append to it.
const NOT_BELOW: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);

impl<G: Gate> Through<G> {
    pub(super) fn open(self: &Arc<Self>, asker: Asker, number: u64, flags: i32, reply: ReplyOpen) {
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        let flags = OFlags::from_bits_retain(flags as u32);
        let operation = if flags.contains(OFlags::TRUNC) { Operation::Change } else { Operation::Look };
        let on = self
            .files
            .descriptor(number)
            .or_else(|| self.nodes.descriptor(&node))
            .unwrap_or_else(|| self.nodes.stand_in(&node));
        self.run_on(asker, operation, &on, move |through| {
            let opened = through.open_below(&asker, &node, flags);
            match opened.and_then(|backing| {
                through.opened(&asker, &node, (backing, false), flags, &|fd| reply.open_backing(fd))
            }) {
                Ok((handle, flags, None)) => reply.opened(handle, flags),
                Ok((handle, flags, Some(bypass))) => reply.opened_passthrough(handle, flags, &bypass),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn open_below(&self, asker: &Asker, node: &Node, flags: OFlags) -> io::Result<Arc<Backing>> {
        let backing = match self.nodes.open(node, self.flags_below(flags)) {
            // Not even its owner can read it. Then the kernel cannot gather writes to it either.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => self.nodes.open(node, flags - NOT_BELOW)?,
            opened => opened?,
        };
        if flags.contains(OFlags::TRUNC) {
            // Who may write to a file may cut it, also when he opens it to read.
            let open = (flags & OFlags::RWMODE != OFlags::RDONLY).then_some(&*backing);
            self.truncate(asker, &backing, open, 0)?;
        }
        Ok(backing)
    }

    /// Where the kernel gathers writes, it reads what is around them, from whatever file is open for writing.
    fn flags_below(&self, flags: OFlags) -> OFlags {
        let below = flags - NOT_BELOW;
        match self.options.write_back {
            WriteBack::Kernel if below & OFlags::RWMODE == OFlags::WRONLY => (below - OFlags::RWMODE) | OFlags::RDWR,
            _ => below,
        }
    }

    pub(super) fn create(
        self: &Arc<Self>,
        asker: Asker,
        parent: u64,
        name: OsString,
        (mode, umask): (u32, u32),
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = OFlags::from_bits_retain(flags as u32);
        self.change(asker, parent, reply, ReplyCreate::error, move |through, node, directory, reply| {
            let created = through.create_below(&asker, &directory, &name, (mode, umask), flags);
            let entered =
                created.and_then(|backing| Ok((through.made(&backing, &node.place, parent, &name)?, backing)));
            let opened = entered.and_then(|(entry, backing)| {
                let opened = through.opened(&asker, &entry.node, (backing, true), flags, &|fd| reply.open_backing(fd));
                if opened.is_err() {
                    through.forget(entry.node.number, 1);
                }
                Ok((opened?, entry))
            });
            match opened {
                Ok(((handle, flags, bypass), entry)) => {
                    through.reply_created(&entry, handle, flags, bypass.as_deref(), reply)
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn create_below(
        &self,
        asker: &Asker,
        directory: &Backing,
        name: &OsString,
        mode: (u32, u32),
        flags: OFlags,
    ) -> io::Result<Arc<Backing>> {
        let _mask = Mask::of(asker, Rights::All)?;
        set_umask(mode.1)?;
        // The kernel has found that there is no such name. If there is one by now, nobody has looked whether the asker may open it: he is to look anew.
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = self.flags_below(flags) | made;
        let fd = match openat(directory, name.as_os_str(), below, Mode::from_raw_mode(mode.0 & 0o7777)) {
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => return Err(Errno::STALE.into()),
            opened => opened?,
        };
        let found = look_at(&fd)?;
        let spot = super::places::Spot::of(&found);
        let backing = Backing::beside(directory, fd, spot.device, spot.inode);
        // As in every file that is opened, nothing is read out of turn.
        let _ = fadvise(&backing, 0, None, Advice::Random);
        Ok(Arc::new(backing))
    }

    fn reply_created(
        &self,
        entry: &Entry,
        handle: FileHandle,
        flags: FopenFlags,
        bypass: Option<&BackingId>,
        reply: ReplyCreate,
    ) {
        let (valid, attributes, generation) = (&self.options.valid, &entry.attributes, entry.generation());
        match bypass {
            None => reply.created(valid, attributes, generation, handle, flags),
            Some(bypass) => reply.created_passthrough(valid, attributes, generation, handle, flags, bypass),
        }
    }

    /// Takes in a file that was opened, and says how the kernel is to go on with it.
    fn opened(
        &self,
        asker: &Asker,
        node: &Node,
        (backing, is_new): (Arc<Backing>, bool),
        flags: OFlags,
        register: &dyn Fn(std::os::fd::BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> io::Result<(FileHandle, FopenFlags, Option<Arc<BackingId>>)> {
        let now = look_at(&backing)?;
        let shared = self.files.of(node.number);
        let writes = flags & OFlags::RWMODE != OFlags::RDONLY;
        let mut state = shared.state();
        let bypass = self.bypass(asker, &backing, &mut state, register);
        state.opened += 1;
        state.bypassed += u32::from(bypass.is_some());
        if writes {
            state.writer = Some(*asker);
        }
        if state.known.strong_count() == 0 {
            state.known = Arc::downgrade(&backing);
        }
        let mut answer = self.answer(&now, &mut state, flags);
        drop(state);
        if self.options.write_back == WriteBack::Kernel && writes && self.cannot_read(&backing) {
            answer |= FopenFlags::FOPEN_DIRECT_IO;
        }
        let owed = self.gate.owes(&backing, is_new).unwrap_or(0);
        let file = Arc::new(OpenFile {
            backing,
            shared,
            direct: flags.contains(OFlags::DIRECT),
            wrote: AtomicBool::new(false),
            owed: AtomicI32::new(owed),
            bypass: bypass.clone(),
            buffered: OnceLock::new(),
        });
        Ok((FileHandle(self.open_files.insert(file, node.number)), answer, bypass))
    }

    /// Closing writes nothing here, so the kernel need not tell of it; it may keep its pages if nothing else wrote to the file.
    fn answer(&self, now: &Statx, state: &mut super::files::State, flags: OFlags) -> FopenFlags {
        let kept = state.keeps_pages(now);
        let mut answer = FopenFlags::FOPEN_NOFLUSH;
        // In the kernel's own cache there may be writes that the file below has not seen.
        if kept || (self.options.write_back == WriteBack::Kernel && !flags.contains(OFlags::DIRECT)) {
            answer |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        answer
    }

    fn cannot_read(&self, backing: &Backing) -> bool {
        rustix::fs::fcntl_getfl(backing).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::WRONLY)
    }

    pub(super) fn release(self: &Arc<Self>, handle: u64) {
        let Some(file) = self.open_files.remove(handle) else { return };
        let mut state = file.shared.state();
        state.opened = state.opened.saturating_sub(1);
        state.bypassed -= u32::from(file.bypass.is_some() && state.bypassed > 0);
        let wrote = file.wrote.load(Ordering::Relaxed);
        state.wrote |= wrote;
        let last = state.opened == 0;
        let asks = state.wrote || (last && state.removed);
        let Some(now) = asks.then(|| look_at(&file.backing).ok()).flatten() else { return };
        if wrote {
            // In the mode in which we write back, all that the kernel has of the file went through us.
            state.remember(&now);
        }
        state.wrote &= !last;
        drop(state);
        if last && now.stx_nlink == 0 {
            // Its last name went while it was open: nobody will read what was written to it.
            self.gate.cleaned(&file.backing);
            self.gate.gone(file.backing.device, file.backing.inode);
            self.let_go(file);
        }
    }

    /// Closes a file without a name, when its turn has come: what it has on the disk is given back by that. Nobody waits for it, and whoever had it open may be gone.
    fn let_go(&self, file: Arc<OpenFile>) {
        let asker = Asker { tid: 0, uid: 0, gid: 0 };
        let ask = Ask { asker, operation: Operation::Change, backing: &file.backing, offset: 0, length: 0 };
        match self.gate.enter(&ask) {
            Entered::Now(pass) => {
                drop(file);
                drop(pass);
            }
            Entered::Later(ticket) => self.gate.park(ticket, Job::Call(Box::new(move || drop(file)))),
        }
    }

    pub(super) fn sync(self: &Arc<Self>, asker: Asker, handle: u64, only_data: bool, reply: ReplyEmpty) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        self.run_on(asker, Operation::Sync, &file.backing.clone(), move |through| {
            match through.sync_below(&file, only_data) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn sync_below(&self, file: &OpenFile, only_data: bool) -> io::Result<()> {
        let syncing = self.gate.syncing(&file.backing);
        let synced = if only_data { fdatasync(&file.backing) } else { fsync(&file.backing) };
        match synced {
            Ok(()) => self.gate.synced(syncing),
            Err(_) => drop(syncing),
        }
        // What went wrong before the file was opened here is told by the first sync, as by the kernel; once, whichever of the two tells.
        let owed = file.owed.swap(0, Ordering::Relaxed);
        let told = if owed == 0 { synced } else { synced.and(Err(Errno::from_raw_os_error(owed))) };
        if told.is_err() {
            self.gate.told(&file.backing);
        }
        Ok(told?)
    }

    pub(super) fn allocate(
        self: &Arc<Self>,
        asker: Asker,
        handle: u64,
        (offset, length): (u64, u64),
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        let on = file.backing.clone();
        self.run(Ask { asker, operation: Operation::Change, backing: &on, offset, length }, move |_| {
            file.note_written();
            let _mask = Mask::of_writer(&asker);
            match fallocate(&file.backing, FallocateFlags::from_bits_retain(mode as u32), offset, length) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Data and holes. Other ways of moving are the kernel's.
    pub(super) fn seek(self: &Arc<Self>, asker: Asker, handle: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        self.run_on(asker, Operation::Look, &file.backing.clone(), move |_| {
            match seek(&file.backing, offset, whence) {
                Ok(offset) => reply.offset(offset as i64),
                Err(error) => reply.error(errno(error)),
            }
        });
    }
}

fn seek(file: impl AsFd, offset: i64, whence: i32) -> io::Result<u64> {
    let from = match whence {
        libc::SEEK_DATA => rustix::fs::SeekFrom::Data(offset as u64),
        libc::SEEK_HOLE => rustix::fs::SeekFrom::Hole(offset as u64),
        libc::SEEK_END => rustix::fs::SeekFrom::End(offset),
        _ => return Err(Errno::INVAL.into()),
    };
    // A negative offset comes as it was given; as an unsigned one it lies beyond every file.
    if offset < 0 && whence != libc::SEEK_END {
        return Err(Errno::NXIO.into());
    }
    Ok(rustix::fs::seek(file, from)?)
}
