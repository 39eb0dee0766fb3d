//! Finding out where data lie, in the order of inode numbers, so that the inodes are read in one sweep: from the inode tables of an ext4 whose device
//! may be read, and elsewhere by asking the file system about each file once.

mod tables;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::fiemap::{Asker, At, Extent};
use crate::problem::{Doing, Problem, Trouble};
use crate::reach;
use crate::tree::{Id, Kind, Place, Tree};
use tables::Tables;

/// So many files are one thread's at a time: few, so that all are at work in the same part of the disk.
const FILES_A_PART: usize = 256;
/// Most files have one extent, and of most others the first is enough.
const EXTENTS_AT_FIRST: usize = 2;

/// How files are placed.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// How many threads ask; 0 for as many as the machine has, but at most 4.
    pub threads: usize,
    /// What is in memory alone is written out first, so that it has a place: each such file, or a whole file system whose inode tables are read.
    pub sync: bool,
    /// The file system is asked about each file, also where its inode tables could be read.
    pub asks_each: bool,
    /// Told now and then how many files have been asked about.
    pub progress: Option<&'a dyn Fn(usize)>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Files that places were looked for.
    pub asked: usize,
    /// Those of them whose inodes were read from their device, so that nobody was asked.
    pub told_by_tables: usize,
    /// Files whose data are in memory alone so far: their place is [`Place::Unknown`].
    pub not_written: usize,
    /// File systems that do not tell where data lie, each with the files on it that were asked for.
    pub silent: Vec<(u64, usize)>,
}

/// Finds the places of the regular files among `ids`, in inode order, on several threads, and sets them in the tree. A file's place is where
/// the first of its data that are on the disk lie: holes, and room that was never written to, are passed over; data within the inode
/// make it [`Place::Nowhere`]. Files that cannot be opened are told to `problem` (with their [`Problem::id`]) and are [`Place::Unknown`]; so are all
/// of a file system that does not tell, of which one is told.
///
/// # Panics
/// If one of `ids` is another tree's.
pub fn place(tree: &mut Tree, ids: &[Id], options: &Options<'_>, problem: &mut dyn FnMut(Problem)) -> Placed {
    let files = in_sweeps(tree, ids);
    let mut placed = Placed { asked: files.len(), ..Placed::default() };
    let mut places = vec![Place::Unknown; files.len()];
    let tables = if options.asks_each { Tables::none() } else { Tables::of(tree, &files, options.sync) };
    let work = Work::new(tree, &files, tables);
    let sync = options.sync;
    let threads = threads(options.threads).min(files.len().div_ceil(FILES_A_PART)).max(1);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work.run(sync, &sender));
        }
        drop(sender);
        let mut done = 0;
        for part in receiver {
            let begins = part.number * FILES_A_PART;
            places[begins..begins + part.places.len()].copy_from_slice(&part.places);
            placed.told_by_tables += part.told_by_tables;
            placed.not_written += part.not_written;
            part.problems.into_iter().for_each(&mut *problem);
            done += part.places.len();
            if let Some(progress) = options.progress {
                progress(done);
            }
        }
    });
    placed.silent = work.silent_devices();
    for (id, place) in files.iter().zip(places) {
        tree.set_place(*id, place);
    }
    placed
}

/// The regular files, by file system and inode number.
fn in_sweeps(tree: &Tree, ids: &[Id]) -> Vec<Id> {
    let mut keyed: Vec<(u64, Id, u16)> = Vec::with_capacity(ids.len());
    for id in ids {
        let entry = tree.entry(*id);
        if entry.kind == Kind::File {
            keyed.push((entry.inode, *id, tree.device_index(*id)));
        }
    }
    keyed.sort_unstable_by_key(|(inode, id, device)| (*device, *inode, *id));
    keyed.into_iter().map(|(_, id, _)| id).collect()
}

/// A file's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// How long the file is, in bytes.
    pub bytes: u64,
    /// Its extents, from its beginning; holes are not among them.
    pub extents: Vec<Extent>,
}

/// All extents of a file, or of a directory where the file system has an answer for those, with its length.
///
/// # Errors
/// What the system says; [`Trouble::NoPlaces`] if the file system does not tell.
///
/// # Panics
/// If `id` is another tree's.
pub fn extents(tree: &Tree, id: Id, sync: bool) -> Result<Data, Trouble> {
    let opened = tree.open(id, OFlags::empty())?;
    let mut data = Data { bytes: u64::try_from(opened.stat.st_size).unwrap_or(0), extents: Vec::new() };
    let asked = Asker::default().each(opened.fd.as_fd(), usize::MAX, sync, |extent| {
        data.extents.push(extent);
        true
    });
    match asked {
        Ok(()) => Ok(data),
        Err(errno) if tells_nothing(errno) => Err(Trouble::NoPlaces),
        Err(errno) => Err(Trouble::Failed { doing: Doing::Place, errno }),
    }
}

/// What the threads share.
struct Work<'a> {
    tree: &'a Tree,
    files: &'a [Id],
    tables: Tables,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    /// For each file system whether it has been found not to tell.
    silent: Vec<AtomicBool>,
}

/// What became of a part.
struct Part {
    number: usize,
    places: Vec<Place>,
    told_by_tables: usize,
    not_written: usize,
    problems: Vec<Problem>,
}

impl Part {
    fn new(number: usize, files: usize) -> Part {
        let places = Vec::with_capacity(files);
        Part { number, places, told_by_tables: 0, not_written: 0, problems: Vec::new() }
    }
}

impl<'a> Work<'a> {
    fn new(tree: &'a Tree, files: &'a [Id], tables: Tables) -> Work<'a> {
        let silent = tree.devices().iter().map(|_| AtomicBool::new(false)).collect();
        Work { tree, files, tables, next: AtomicUsize::new(0), silent }
    }

    fn run(&self, sync: bool, done: &Sender<Part>) {
        let mut asker = Asker::default();
        let mut near = Near::default();
        let (mut window, mut told) = (Vec::new(), Vec::new());
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(files) = self.files.chunks(FILES_A_PART).nth(number) else { return };
            let mut part = Part::new(number, files.len());
            self.tables.tell(self.tree, files, &mut window, &mut told);
            for (id, begins) in files.iter().zip(&told) {
                let place = match begins {
                    Some(byte) => Place::At(*byte),
                    None => self.ask(*id, sync, &mut asker, &mut near, &mut part),
                };
                part.told_by_tables += usize::from(begins.is_some());
                part.places.push(place);
            }
            // Whoever listens no more wants no more.
            if done.send(part).is_err() {
                return;
            }
        }
    }

    fn ask(&self, id: Id, sync: bool, asker: &mut Asker, near: &mut Near, part: &mut Part) -> Place {
        let silent = &self.silent[usize::from(self.tree.device_index(id))];
        if silent.load(Ordering::Relaxed) {
            return Place::Unknown;
        }
        let mut failed = |doing: Doing, errno: Errno| {
            part.problems.push(Problem::failed(self.path(id), id, doing, errno));
            Place::Unknown
        };
        let fd = match near.open(self.tree, id) {
            Ok(fd) => fd,
            Err(errno) => return failed(Doing::Open, errno),
        };
        let mut place = Place::Nowhere;
        let asked = asker.each(fd.as_fd(), EXTENTS_AT_FIRST, sync, |extent| {
            place = match extent.at {
                At::Disk => Place::At(extent.physical),
                At::Unknown => Place::Unknown,
                At::Unwritten | At::Inline => return true,
            };
            false
        });
        match asked {
            Ok(()) => {
                part.not_written += usize::from(place == Place::Unknown);
                place
            }
            Err(errno) if tells_nothing(errno) => {
                if !silent.swap(true, Ordering::Relaxed) {
                    part.problems.push(Problem { path: self.path(id), id: Some(id), what: Trouble::NoPlaces });
                }
                Place::Unknown
            }
            Err(errno) => failed(Doing::Place, errno),
        }
    }

    fn path(&self, id: Id) -> Vec<u8> {
        let mut path = Vec::new();
        self.tree.path_into(id, &mut path);
        path
    }

    fn silent_devices(&self) -> Vec<(u64, usize)> {
        let files_of =
            |index: usize| self.files.iter().filter(|id| usize::from(self.tree.device_index(**id)) == index).count();
        let silent = self.silent.iter().enumerate().filter(|(_, silent)| silent.load(Ordering::Relaxed));
        silent.map(|(index, _)| (self.tree.devices()[index], files_of(index))).collect()
    }
}

/// The directory of the last file, which the next one often lies in, too: from there its way is shorter.
#[derive(Default)]
struct Near {
    directory: Option<Id>,
    /// Opened for the second file in a row.
    fd: Option<OwnedFd>,
    path: Vec<u8>,
}

impl Near {
    fn open(&mut self, tree: &Tree, id: Id) -> Result<OwnedFd, Errno> {
        let directory = tree.parent(id);
        if directory != self.directory {
            (self.directory, self.fd) = (directory, None);
        } else if let (Some(directory), None) = (directory, &self.fd) {
            tree.path_into(directory, &mut self.path);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.fd = Some(reach::open(tree.base(directory), &self.path, flags)?);
        }
        if let Some(fd) = &self.fd {
            return reach::open(Some(fd.as_fd()), tree.name(id).as_bytes(), tree.open_flags(id));
        }
        tree.path_into(id, &mut self.path);
        reach::open(tree.base(id), &self.path, tree.open_flags(id))
    }
}

/// Whether a file system's answer is that it knows no places.
fn tells_nothing(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS | Errno::INVAL)
}

fn threads(asked_for: usize) -> usize {
    match asked_for {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(4),
        threads => threads.min(64),
    }
}
