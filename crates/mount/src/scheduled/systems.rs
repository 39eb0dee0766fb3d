//! The file systems below the mount, each with the disk that it lies on.

use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLock};

use hoistway_serve::config::mount::MountConfig;

use super::disks::{self, Disk, Lies};
use super::places::Places;
use super::queue::Queue;
use super::{SetUpError, now_ns};
use crate::Backing;

/// So many file systems are told apart; of what lies below beyond that, nothing is scheduled.
const SYSTEMS_MAX: usize = 256;

/// What tells a file system from another that has its number after it: its kind and its own number, as statfs(2) has them.
type Mark = (i64, [i32; 2]);

/// A file system.
pub(super) struct FileSystem {
    /// Its number, as `st_dev` has it.
    pub number: u64,
    /// The queue of its disk.
    pub queue: Arc<Queue>,
    /// Where its files lie.
    pub places: Places,
    kind: String,
    mark: Mark,
    /// Another one has its number.
    is_gone: AtomicBool,
}

/// All of them.
pub(super) struct Systems {
    config: MountConfig,
    /// The device that was named.
    only: Option<Disk>,
    /// They are added and never taken away, so that one can be used without a lock.
    known: Box<[OnceLock<FileSystem>]>,
    queues: RwLock<Vec<Arc<Queue>>>,
    adding: Mutex<()>,
}

impl Systems {
    /// None yet.
    ///
    /// # Errors
    /// When the device that is named is none.
    pub fn new(config: &MountConfig) -> Result<Systems, SetUpError> {
        Systems::with_room(config, SYSTEMS_MAX)
    }

    fn with_room(config: &MountConfig, most: usize) -> Result<Systems, SetUpError> {
        let only = config.mount.device.as_deref().map(disks::named).transpose()?;
        let known = std::iter::repeat_with(OnceLock::new).take(most).collect();
        Ok(Systems { config: config.clone(), only, known, queues: RwLock::default(), adding: Mutex::default() })
    }

    /// The file system of a file; `None` where it could not be set up, which is told once.
    #[inline]
    pub fn of(&self, backing: &Backing) -> Option<&FileSystem> {
        let noted = backing.noted.load(Ordering::Relaxed);
        match noted.checked_sub(1).and_then(|at| self.known.get(at as usize)) {
            Some(system) => system.get(),
            None => self.found(backing),
        }
    }

    #[cold]
    fn found(&self, backing: &Backing) -> Option<&FileSystem> {
        // A turn is for what was asked for: were the file system to read ahead by itself, it would do so out of turn. The kernel reads ahead above the mount.
        // What cannot be read takes no advice.
        let _ = rustix::fs::fadvise(&backing.fd, 0, None, rustix::fs::Advice::Random);
        match self.add(backing, now_ns()) {
            Ok(system) => system,
            Err(error) => {
                tracing::error!("what lies on file system {:#x} is not scheduled: {error}", backing.device);
                backing.noted.store(u32::MAX, Ordering::Relaxed);
                None
            }
        }
    }

    /// Finds the file system of a file, and its disk; sets the disk's queue up, if it has none yet.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn add(&self, backing: &Backing, now_ns: u64) -> Result<Option<&FileSystem>, SetUpError> {
        if backing.noted.load(Ordering::Relaxed) == u32::MAX {
            return Ok(None);
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = mark_of(backing);
        let of = |system: &FileSystem| {
            let has_number = system.number == backing.device && !system.is_gone.load(Ordering::Relaxed);
            if has_number && system.mark != mark {
                system.is_gone.store(true, Ordering::Relaxed);
            }
            has_number && system.mark == mark
        };
        let mut known = self.known.iter().enumerate();
        let Some((at, place)) = known.find(|(_, system)| system.get().is_none_or(of)) else {
            static FULL: Once = Once::new();
            FULL.call_once(|| {
                let most = self.known.len();
                tracing::warn!("{most} file systems were met below the source: on others nothing is scheduled");
            });
            backing.noted.store(u32::MAX, Ordering::Relaxed);
            return Ok(None);
        };
        if place.get().is_none() {
            let system = self.set_up(backing, mark, now_ns)?;
            tracing::info!("{}", system.told());
            // Nobody else adds meanwhile.
            let _ = place.set(system);
        }
        backing.noted.store(at as u32 + 1, Ordering::Relaxed);
        Ok(place.get())
    }

    fn set_up(&self, backing: &Backing, mark: Mark, now_ns: u64) -> Result<FileSystem, SetUpError> {
        let mut lies = disks::find(backing);
        if let Some(only) = &self.only
            && only.number != lies.disk.number
        {
            lies = Lies { disk: only.clone(), offset: 0, kind: lies.kind, volume: None };
        }
        let places = Places::new(&lies);
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        // A number or a name may be another disk's by now.
        let is_same = |queue: &&Arc<Queue>| {
            let disk = &queue.disk;
            (disk.number, disk.bytes, disk.rotates) == (lies.disk.number, lies.disk.bytes, lies.disk.rotates)
        };
        let same = queues.iter().find(is_same).cloned();
        let name = lies.disk.name.clone();
        let mut names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}.{number}")));
        let is_new = |name: &String| queues.iter().all(|queue| queue.name != *name);
        lies.disk.name = names.find(is_new).unwrap_or(name);
        let queue = match same {
            Some(queue) => queue,
            None => {
                let (queue, warnings) = Queue::new(queues.len() as u32, lies.disk, &self.config, now_ns)?;
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                let queue = Arc::new(queue);
                queues.push(queue.clone());
                queue
            }
        };
        let is_gone = AtomicBool::new(false);
        Ok(FileSystem { number: backing.device, queue, places, kind: lies.kind, mark, is_gone })
    }

    /// The queues.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known of them, as lines for the log.
    pub fn told(&self) -> Vec<String> {
        self.known.iter().map_while(OnceLock::get).map(FileSystem::told).collect()
    }
}

fn mark_of(backing: &Backing) -> Mark {
    // SAFETY: all of it are numbers, for which zeros do.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure lives through the call.
    if unsafe { libc::fstatfs(backing.fd.as_raw_fd(), &raw mut told) } != 0 {
        return Mark::default();
    }
    // SAFETY: it is two numbers, of which the library shows none.
    let own = unsafe { std::mem::transmute::<libc::fsid_t, [i32; 2]>(told.f_fsid) };
    (told.f_type as i64, own)
}

impl FileSystem {
    fn told(&self) -> String {
        let state = self.queue.lock();
        let info = state.device.elevator().info();
        let places = match (self.queue.disk.has_places, self.places.knows_inodes()) {
            (false, _) => "by file, as it has no device of its own",
            (true, false) => "from its extents",
            (true, true) => "from its extents and inode tables",
        };
        format!(
            "{} on {}: elevator {} (as {}), depth {}, places {places}",
            if self.kind.is_empty() { "a file system" } else { &self.kind },
            self.queue.name,
            info.name,
            state.device.elevator_reason(),
            state.device.depth(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_number_that_another_file_system_has_by_now_is_noticed() {
        let systems = Systems::new(&MountConfig::default()).expect("no device is named");
        let at = |path: &str| Backing::new(File::open(path).expect("every Linux has it").into(), 7, 1);
        let of = |backing: &Backing| systems.of(backing).map(std::ptr::from_ref);
        let (disk, memory) = (at("/"), at("/proc"));
        let (first, second) = (of(&disk), of(&memory));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(
            (of(&at("/proc")), of(&memory), of(&disk)),
            (second, second, first),
            "who has it open knows it still"
        );
        assert_ne!(of(&at("/")), first, "it has come back, as another");
    }

    #[test]
    fn beyond_the_most_nothing_is_scheduled() {
        let systems = Systems::with_room(&MountConfig::default(), 4).expect("no device is named");
        let at = |number| Backing::new(File::open("/proc").expect("every Linux has it").into(), number, 1);
        let known = (0..10).filter(|number| systems.of(&at(1000 + number)).is_some()).count();
        assert_eq!(known, 4);
        assert!(systems.of(&at(1000)).is_some(), "those that were met first are");
    }
}
