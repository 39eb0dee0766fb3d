//! The file systems below the mount, each with the disk that it lies on.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use hoistway_serve::config::mount::MountConfig;

use super::disks::{self, Disk, Lies};
use super::places::Places;
use super::queue::Queue;
use super::{SetUpError, now_ns};
use crate::Backing;

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
        let only = config.mount.device.as_deref().map(disks::named).transpose()?;
        let known = std::iter::repeat_with(OnceLock::new).take(SYSTEMS_MAX).collect();
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
        let of = |system: &&OnceLock<FileSystem>| system.get().is_none_or(|system| system.number == backing.device);
        let Some((at, place)) = self.known.iter().enumerate().find(|(_, system)| of(system)) else {
            backing.noted.store(u32::MAX, Ordering::Relaxed);
            return Ok(None);
        };
        if place.get().is_none() {
            let system = self.set_up(backing, now_ns)?;
            tracing::info!("{}", system.told());
            // Nobody else adds meanwhile.
            let _ = place.set(system);
        }
        backing.noted.store(at as u32 + 1, Ordering::Relaxed);
        Ok(place.get())
    }

    fn set_up(&self, backing: &Backing, now_ns: u64) -> Result<FileSystem, SetUpError> {
        let mut lies = disks::find(backing);
        if let Some(only) = &self.only
            && only.number != lies.disk.number
        {
            lies = Lies { disk: only.clone(), offset: 0, kind: lies.kind, volume: None };
        }
        let places = Places::new(&lies);
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let same = queues.iter().find(|queue| queue.disk.number == lies.disk.number).cloned();
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
        Ok(FileSystem { number: backing.device, queue, places, kind: lies.kind })
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
