//! The file systems below the mount, each with the disk that it lies on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLock};

use hoistway_serve::config::mount::MountConfig;

use super::disks::{self, Disk, Lies};
use super::places::Places;
use super::queue::Queue;
use super::{SetUpError, now_ns};
use crate::Backing;
use crate::backing::Kind;

/// So many file systems are told apart; of what lies below beyond that, nothing is scheduled.
const SYSTEMS_MAX: usize = 256;

/// A file system.
pub(super) struct FileSystem {
    /// Its number, as `st_dev` has it.
    pub number: u64,
    /// The queue of its disk.
    pub queue: Arc<Queue>,
    /// Where its files lie.
    pub places: Places,
    kind: String,
    /// What tells it from another that has its number after it, if it told that.
    mark: Option<Kind>,
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
        let noted = backing.volume.noted.load(Ordering::Relaxed);
        match noted.checked_sub(1).and_then(|at| self.known.get(at as usize)) {
            Some(system) => system.get(),
            None => self.found(backing),
        }
    }

    /// Whether it was found out where a file lies, so that nothing has to be asked for that.
    #[inline]
    pub fn knows(&self, backing: &Backing) -> bool {
        backing.volume.noted.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn found(&self, backing: &Backing) -> Option<&FileSystem> {
        match self.add(backing, now_ns()) {
            Ok(system) => system,
            Err(error) => {
                tracing::error!("what lies on file system {:#x} is not scheduled: {error}", backing.device);
                backing.volume.noted.store(u32::MAX, Ordering::Relaxed);
                None
            }
        }
    }

    /// Finds the file system of a file, and its disk; sets the disk's queue up, if it has none yet.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn add(&self, backing: &Backing, now_ns: u64) -> Result<Option<&FileSystem>, SetUpError> {
        if backing.volume.noted.load(Ordering::Relaxed) == u32::MAX {
            return Ok(None);
        }
        if let Some(system) = self.met(backing) {
            return Ok(Some(system));
        }
        // All that may take its time is asked before the lock: a file system or a device that does not answer holds those alone who want something of it.
        let mut lies = disks::find(backing);
        if let Some(only) = &self.only
            && only.number != lies.disk.number
        {
            lies = Lies { disk: only.clone(), offset: 0, kind: lies.kind, volume: None };
        }
        let places = Places::new(&lies);
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(system) = self.met(backing) {
            return Ok(Some(system));
        }
        let Some((at, place)) = self.known.iter().enumerate().find(|(_, place)| place.get().is_none()) else {
            static FULL: Once = Once::new();
            FULL.call_once(|| {
                let most = self.known.len();
                tracing::warn!("{most} file systems were met below the source: on others nothing is scheduled");
            });
            backing.volume.noted.store(u32::MAX, Ordering::Relaxed);
            return Ok(None);
        };
        let system = self.set_up(backing, lies, places, now_ns)?;
        tracing::info!("{}", system.told());
        // Nobody else adds meanwhile.
        let _ = place.set(system);
        backing.volume.noted.store(at as u32 + 1, Ordering::Relaxed);
        Ok(place.get())
    }

    /// The file system of a file, if it was met before. One that has its number, and is another by what both told, is gone; who told nothing may be either.
    fn met(&self, backing: &Backing) -> Option<&FileSystem> {
        let mark = backing.kind();
        let is_it = |system: &FileSystem| {
            let has_number = system.number == backing.device && !system.is_gone.load(Ordering::Relaxed);
            let is_other = mark.zip(system.mark).is_some_and(|(mark, known)| mark != known);
            if has_number && is_other {
                system.is_gone.store(true, Ordering::Relaxed);
            }
            has_number && !is_other
        };
        let mut known = self.known.iter().map_while(OnceLock::get).enumerate();
        let (at, system) = known.find(|(_, system)| is_it(system))?;
        backing.volume.noted.store(at as u32 + 1, Ordering::Relaxed);
        Some(system)
    }

    fn set_up(&self, backing: &Backing, mut lies: Lies, places: Places, now_ns: u64) -> Result<FileSystem, SetUpError> {
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
        Ok(FileSystem { number: backing.device, queue, places, kind: lies.kind, mark: backing.kind(), is_gone })
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
    fn a_file_system_that_fails_to_tell_its_kind_is_the_one_that_it_was() {
        let systems = Systems::new(&MountConfig::default()).expect("no device is named");
        let at = || Backing::new(File::open("/").expect("every Linux has it").into(), 7, 1);
        let of = |backing: &Backing| systems.of(backing).map(std::ptr::from_ref);
        let before = of(&at());
        assert!(before.is_some() && of(&at().told(None)) == before);
        assert_eq!(of(&at()), before, "and it is not taken to be gone");
        assert_eq!(systems.known.iter().filter(|system| system.get().is_some()).count(), 1);
    }

    #[test]
    fn files_of_one_file_system_are_found_out_about_once() {
        let systems = Systems::new(&MountConfig::default()).expect("no device is named");
        let root = || File::open("/").expect("every Linux has it").into();
        let first = Backing::new(root(), 7, 1);
        let (second, elsewhere) = (Backing::beside(&first, root(), 7, 2), Backing::beside(&first, root(), 8, 2));
        assert!(!systems.knows(&first) && systems.of(&second).is_some());
        assert!(systems.knows(&first) && !systems.knows(&elsewhere));
    }

    #[test]
    fn what_is_known_is_found_while_another_file_system_is_set_up() {
        let systems = Systems::new(&MountConfig::default()).expect("no device is named");
        let at = || Backing::new(File::open("/").expect("every Linux has it").into(), 7, 1);
        assert!(systems.of(&at()).is_some());
        let _adding = systems.adding.lock().expect("nobody has panicked");
        // It would never come back.
        assert!(systems.of(&at()).is_some());
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
