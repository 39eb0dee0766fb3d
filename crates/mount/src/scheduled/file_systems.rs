//! The file systems below the mount and the queues of their disks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLock, Weak};

use hoistway_config::mount::MountConfig;

use super::SetUpError;
use super::disks::{self, Disk, Placement};
use super::extents::ExtentCache;
use super::queue::{Queue, device_config_of};
use super::run_time_terms::RunTimeTerms;
use super::system::now_ns;
use crate::Backing;
use crate::backing::{FileSystemFacts, FsIdentity};

/// Maximum number of file systems; further ones are not scheduled.
const SYSTEMS_MAX: usize = 256;

/// A file system below the mount.
pub(super) struct FileSystem {
    /// The device number (`st_dev`).
    pub number: u64,
    /// The queue of its disk.
    pub queue: Arc<Queue>,
    /// The cached extents of its files.
    pub extent_cache: ExtentCache,
    kind: String,
    /// The identity from statfs(2), which distinguishes it from a later file system with the same
    /// number.
    identity: Option<FsIdentity>,
    /// Another file system has taken the number.
    is_gone: AtomicBool,
    /// The facts by which open files and known inodes refer to the file system.
    users: Mutex<Vec<Weak<FileSystemFacts>>>,
}

/// The table of file systems.
pub(super) struct FileSystems {
    config: MountConfig,
    /// Terms set at run time, which also apply to queues created later.
    pub run_time: Arc<RunTimeTerms>,
    /// The disk set by the configuration.
    configured_disk: Option<Disk>,
    /// Entries are added and never removed, so that they can be used without a lock.
    known: Box<[OnceLock<FileSystem>]>,
    queues: RwLock<Vec<Arc<Queue>>>,
    add_lock: Mutex<()>,
}

impl FileSystems {
    /// Creates an empty table.
    ///
    /// # Errors
    /// The configured device does not exist.
    pub fn new(config: &MountConfig) -> Result<FileSystems, SetUpError> {
        FileSystems::with_capacity(config, SYSTEMS_MAX)
    }

    fn with_capacity(config: &MountConfig, maximum: usize) -> Result<FileSystems, SetUpError> {
        let configured_disk = config.mount.device.as_deref().map(disks::find_by_name).transpose()?;
        let known = std::iter::repeat_with(OnceLock::new).take(maximum).collect();
        Ok(FileSystems {
            config: config.clone(),
            run_time: Arc::default(),
            configured_disk,
            known,
            queues: RwLock::default(),
            add_lock: Mutex::default(),
        })
    }

    /// Returns the file system of a file, setting it up at first use; `None` if the setup failed,
    /// which is logged once.
    #[inline]
    pub fn of(&self, backing: &Backing) -> Option<&FileSystem> {
        let noted = backing.file_system.gate_index.load(Ordering::Relaxed);
        match noted.checked_sub(1).and_then(|at| self.known.get(at as usize)) {
            Some(system) => system.get(),
            None => self.find_or_add(backing),
        }
    }

    /// Returns true if the file system of a file is known, so that no query is needed.
    #[inline]
    pub fn is_known(&self, backing: &Backing) -> bool {
        backing.file_system.gate_index.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn find_or_add(&self, backing: &Backing) -> Option<&FileSystem> {
        match self.add(backing, now_ns()) {
            Ok(system) => system,
            Err(error) => {
                tracing::error!("file system {:#x} is not scheduled: {error}", backing.device);
                backing.file_system.gate_index.store(u32::MAX, Ordering::Relaxed);
                None
            }
        }
    }

    /// Finds the file system of a file and its disk, and sets up the disk's queue if there is none.
    ///
    /// # Errors
    /// An invalid configuration of the queue.
    pub fn add(&self, backing: &Backing, now_ns: u64) -> Result<Option<&FileSystem>, SetUpError> {
        if backing.file_system.gate_index.load(Ordering::Relaxed) == u32::MAX {
            return Ok(None);
        }
        if let Some(system) = self.find(backing) {
            return Ok(Some(system));
        }
        // Everything that may block is queried before the lock, so that a hanging file system or
        // device delays only its own users.
        let mut placement = disks::placement_of(backing);
        if let Some(configured_disk) = &self.configured_disk
            && configured_disk.number != placement.disk.number
        {
            placement = Placement { disk: configured_disk.clone(), offset: 0, kind: placement.kind, volume: None };
        }
        let places = ExtentCache::new(&placement);
        let _adding = self.add_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(system) = self.find(backing) {
            return Ok(Some(system));
        }
        let Some((at, slot)) = self.known.iter().enumerate().find(|(_, slot)| slot.get().is_none()) else {
            static FULL: Once = Once::new();
            FULL.call_once(|| {
                let maximum = self.known.len();
                tracing::warn!("more than {maximum} file systems below the source: further ones are not scheduled");
            });
            backing.file_system.gate_index.store(u32::MAX, Ordering::Relaxed);
            return Ok(None);
        };
        let system = self.set_up(backing, placement, places, now_ns)?;
        tracing::info!("{}", system.describe());
        // The lock excludes another addition.
        let _ = slot.set(system);
        backing.file_system.gate_index.store(at as u32 + 1, Ordering::Relaxed);
        Ok(slot.get())
    }

    /// Returns the file system of a file if it is known. An entry with the same number but another
    /// identity is marked gone; without an identity the numbers decide.
    fn find(&self, backing: &Backing) -> Option<&FileSystem> {
        let identity = backing.identity();
        let is_match = |system: &FileSystem| {
            let has_number = system.number == backing.device && !system.is_gone.load(Ordering::Relaxed);
            let is_other = identity.zip(system.identity).is_some_and(|(identity, known)| identity != known);
            if has_number && is_other {
                system.is_gone.store(true, Ordering::Relaxed);
            }
            has_number && !is_other
        };
        let mut known = self.known.iter().map_while(OnceLock::get).enumerate();
        let (at, system) = known.find(|(_, system)| is_match(system))?;
        system.add_user(backing);
        backing.file_system.gate_index.store(at as u32 + 1, Ordering::Relaxed);
        Some(system)
    }

    fn set_up(
        &self,
        backing: &Backing,
        mut placement: Placement,
        places: ExtentCache,
        now_ns: u64,
    ) -> Result<FileSystem, SetUpError> {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        // A number or a name may belong to another disk by now.
        let is_same = |queue: &&Arc<Queue>| {
            let disk = &queue.disk;
            (disk.number, disk.bytes, disk.rotates)
                == (placement.disk.number, placement.disk.bytes, placement.disk.rotates)
        };
        let same = queues.iter().find(is_same).or_else(|| queues.iter().find(|queue| self.is_free(queue, &placement)));
        let same = same.cloned();
        let name = placement.disk.name.clone();
        let mut names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}.{number}")));
        let is_new = |name: &String| queues.iter().all(|queue| queue.name != *name);
        placement.disk.name = names.find(is_new).unwrap_or(name);
        let queue = match same {
            Some(queue) => queue,
            None => {
                let (queue, warnings) = Queue::new(placement.disk, &self.config, &self.run_time, now_ns)?;
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                let queue = Arc::new(queue);
                queues.push(queue.clone());
                queue
            }
        };
        let system = FileSystem {
            number: backing.device,
            queue,
            extent_cache: places,
            kind: placement.kind,
            identity: backing.identity(),
            is_gone: AtomicBool::new(false),
            users: Mutex::default(),
        };
        system.add_user(backing);
        Ok(system)
    }

    /// Returns true if a queue without a disk can serve another file system without one: no file of
    /// its own file systems is in use. The tables of a queue take up to 50 MiB.
    fn is_free(&self, queue: &Queue, placement: &Placement) -> bool {
        let is_configured = |disk: &Disk| device_config_of(disk, &self.config).is_some();
        let without_disk = !queue.disk.maps_extents && !placement.disk.maps_extents;
        let mut users = self.known.iter().map_while(OnceLock::get).filter(|system| std::ptr::eq(&*system.queue, queue));
        without_disk
            && !is_configured(&queue.disk)
            && !is_configured(&placement.disk)
            && !users.any(FileSystem::is_used)
    }

    /// Returns all queues.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Releases the memory that only an active mount needs.
    pub fn release_memory(&self) {
        for system in self.known.iter().map_while(OnceLock::get) {
            system.extent_cache.shrink();
        }
        for queue in self.queues() {
            queue.lock().issuers.shrink();
        }
    }

    /// Describes each file system in one line, for the log.
    pub fn describe(&self) -> Vec<String> {
        self.known.iter().map_while(OnceLock::get).map(FileSystem::describe).collect()
    }
}

impl FileSystem {
    /// Records that a file refers to the file system.
    fn add_user(&self, backing: &Backing) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|user| user.strong_count() > 0);
        users.push(Arc::downgrade(&backing.file_system));
    }

    /// Returns true if a file of the file system is open or known to the kernel.
    fn is_used(&self) -> bool {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|user| user.strong_count() > 0)
    }

    fn describe(&self) -> String {
        let state = self.queue.lock();
        let info = state.device.scheduler().elevator().info();
        let places = match (self.queue.disk.maps_extents, self.extent_cache.has_inode_tables()) {
            (false, _) => "by file, as it has no device of its own",
            (true, false) => "from its extents",
            (true, true) => "from its extents and inode tables",
        };
        format!(
            "{} on {}: elevator {} (as {}), depth {}, places {places}",
            if self.kind.is_empty() { "a file system" } else { &self.kind },
            self.queue.name,
            info.name,
            state.device.scheduler().elevator_reason(),
            state.device.scheduler().depth(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_reused_device_number_is_detected() {
        let file_systems = FileSystems::new(&MountConfig::default()).expect("no device is named");
        let at = |path: &str| Backing::new(File::open(path).expect("every Linux has it").into(), 7, 1);
        let of = |backing: &Backing| file_systems.of(backing).map(std::ptr::from_ref);
        let (disk, memory) = (at("/"), at("/proc"));
        let (first, second) = (of(&disk), of(&memory));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(
            (of(&at("/proc")), of(&memory), of(&disk)),
            (second, second, first),
            "existing handles keep their file system"
        );
        assert_ne!(of(&at("/")), first, "it has come back, as another");
    }

    #[test]
    fn a_failed_statfs_does_not_change_the_file_system() {
        let file_systems = FileSystems::new(&MountConfig::default()).expect("no device is named");
        let at = || Backing::new(File::open("/").expect("every Linux has it").into(), 7, 1);
        let of = |backing: &Backing| file_systems.of(backing).map(std::ptr::from_ref);
        let before = of(&at());
        assert!(before.is_some() && of(&at().with_identity(None)) == before);
        assert_eq!(of(&at()), before, "and it is not taken to be gone");
        assert_eq!(file_systems.known.iter().filter(|system| system.get().is_some()).count(), 1);
    }

    #[test]
    fn a_file_system_is_identified_once_for_all_its_files() {
        let file_systems = FileSystems::new(&MountConfig::default()).expect("no device is named");
        let root = || File::open("/").expect("every Linux has it").into();
        let first = Backing::new(root(), 7, 1);
        let (second, elsewhere) =
            (Backing::with_neighbour(&first, root(), 7, 2), Backing::with_neighbour(&first, root(), 8, 2));
        assert!(!file_systems.is_known(&first) && file_systems.of(&second).is_some());
        assert!(file_systems.is_known(&first) && !file_systems.is_known(&elsewhere));
    }

    #[test]
    fn a_known_file_system_is_found_while_another_is_set_up() {
        let file_systems = FileSystems::new(&MountConfig::default()).expect("no device is named");
        let at = || Backing::new(File::open("/").expect("every Linux has it").into(), 7, 1);
        assert!(file_systems.of(&at()).is_some());
        let _adding = file_systems.add_lock.lock().expect("no thread has panicked");
        // A deadlock would block here.
        assert!(file_systems.of(&at()).is_some());
    }

    #[test]
    fn a_queue_without_a_disk_is_used_again_once_its_file_system_is_unused() {
        let file_systems = FileSystems::new(&MountConfig::default()).expect("no device is named");
        let at = |number| Backing::new(File::open("/proc").expect("every Linux has it").into(), number, 1);
        let first = at(7);
        assert!(file_systems.of(&first).is_some() && file_systems.of(&at(8)).is_some());
        assert_eq!(file_systems.queues().len(), 2, "the first is in use");
        for number in 9..12 {
            assert!(file_systems.of(&at(number)).is_some());
        }
        assert_eq!(file_systems.queues().len(), 2);
        drop(first);
        let (second, third) = (at(12), at(13));
        assert!(file_systems.of(&second).is_some() && file_systems.of(&third).is_some());
        assert_eq!(file_systems.queues().len(), 2);
        let queue_of = |backing| file_systems.of(backing).map(|system| std::ptr::from_ref(&*system.queue));
        assert_ne!(queue_of(&second), queue_of(&third), "both are in use");
    }

    #[test]
    fn file_systems_beyond_the_maximum_are_not_scheduled() {
        let file_systems = FileSystems::with_capacity(&MountConfig::default(), 4).expect("no device is named");
        let at = |number| Backing::new(File::open("/proc").expect("every Linux has it").into(), number, 1);
        let known = (0..10).filter(|number| file_systems.of(&at(1000 + number)).is_some()).count();
        assert_eq!(known, 4);
        assert!(file_systems.of(&at(1000)).is_some(), "those that were met first are");
    }
}
