//! A task's plug: collects the bios that one system call submits, and merges them before the queue
//! gets them.
//!
//! Linux plugs on tasks from 2.6.39 on (J. Corbet, "Explicit block device plugging", LWN, April
//! 2011).

use hoistway_core::{Bio, Flags, Op, QueueConfig};

/// The requests that a task has plugged.
#[derive(Debug, Default)]
pub(super) struct Plug {
    requests: Vec<PluggedRequest>,
    /// True if the plug is that of a call of direct I/O, which the kernel has not plugged so far.
    pub is_of_call: bool,
}

/// Contiguous bios in the order of the disk, which become one request.
#[derive(Debug)]
struct PluggedRequest {
    sector: u64,
    sectors: u32,
    bios: Vec<Bio>,
}

impl Plug {
    /// Adds a bio: to a request of the plug that it extends, if both may merge, otherwise as a new
    /// request. Returns the number of requests in the plug and the length in sectors of the request
    /// with the bio.
    pub fn add(&mut self, bio: Bio, queue: &QueueConfig) -> (u32, u32) {
        let joins = |held: &&mut PluggedRequest| queue.merging && held.takes(&bio, queue.max_sectors);
        // The newest request first, as in the kernel.
        let sectors = match self.requests.iter_mut().rev().find(joins) {
            Some(held) => held.join(bio),
            None => {
                self.requests.push(PluggedRequest { sector: bio.sector, sectors: bio.sectors, bios: vec![bio] });
                bio.sectors
            }
        };
        (self.requests.len() as u32, sectors)
    }

    /// Takes all bios out: the requests in the order of their creation.
    pub fn take(&mut self) -> Vec<Bio> {
        self.requests.drain(..).flat_map(|held| held.bios).collect()
    }
}

impl PluggedRequest {
    fn takes(&self, bio: &Bio, max_sectors: u32) -> bool {
        let Some(first) = self.bios.first() else { return false };
        let alone = |bio: &Bio| bio.flags.has(Flags::FUA) || matches!(bio.op, Op::Flush | Op::Discard);
        let alike = first.op == bio.op && first.flags.has(Flags::SYNC) == bio.flags.has(Flags::SYNC);
        let touches = self.end() == bio.sector || bio.sector + u64::from(bio.sectors) == self.sector;
        alike && touches && !alone(bio) && !alone(first) && self.sectors.saturating_add(bio.sectors) <= max_sectors
    }

    fn join(&mut self, bio: Bio) -> u32 {
        if self.end() == bio.sector {
            self.bios.push(bio);
        } else {
            self.sector = bio.sector;
            self.bios.insert(0, bio);
        }
        self.sectors += bio.sectors;
        self.sectors
    }

    fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }
}

#[cfg(test)]
mod tests {
    use hoistway_core::{Capacity, ElevatorStorage, Kind, NoSink, Owned, Priority, RequestQueue, Storage};

    use super::*;

    fn bios(list: &[(Op, u64, u32)]) -> Vec<Bio> {
        let capacity = Capacity::default();
        let noop = Kind::from_name("noop").unwrap();
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(noop, capacity));
        let mut queue: RequestQueue<Owned<NoSink>> =
            RequestQueue::new(QueueConfig::default(), storage, elevator, NoSink, 0);
        let context = queue.create_context(1, Priority::UNSET, 0).unwrap();
        let bio = |(token, &(op, sector, sectors)): (usize, &(Op, u64, u32))| Bio {
            token: token as u64,
            context,
            op,
            sector,
            sectors,
            flags: Flags::NONE,
        };
        list.iter().enumerate().map(bio).collect()
    }

    #[test]
    fn contiguous_bios_become_one_request_in_either_order() {
        let mut plug = Plug::default();
        let list =
            bios(&[(Op::Read, 100, 8), (Op::Read, 500, 8), (Op::Read, 108, 8), (Op::Read, 92, 8), (Op::Write, 116, 8)]);
        let counts: Vec<_> = list.into_iter().map(|bio| plug.add(bio, &QueueConfig::default())).collect();
        assert_eq!(counts, [(1, 8), (2, 8), (2, 16), (2, 24), (3, 8)]);
        let sectors: Vec<u64> = plug.take().iter().map(|bio| bio.sector).collect();
        assert_eq!(sectors, [92, 100, 108, 500, 116]);
        assert!(plug.take().is_empty());
    }

    #[test]
    fn a_request_of_the_plug_grows_to_the_limit_of_the_queue() {
        let mut plug = Plug::default();
        let queue = QueueConfig { max_sectors: 16, ..QueueConfig::default() };
        let counts: Vec<_> = bios(&[(Op::Read, 0, 8), (Op::Read, 8, 8), (Op::Read, 16, 8)])
            .into_iter()
            .map(|bio| plug.add(bio, &queue))
            .collect();
        assert_eq!(counts, [(1, 8), (1, 16), (2, 8)]);
    }
}
