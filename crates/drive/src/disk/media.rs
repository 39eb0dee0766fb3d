//! The mechanics of a disk: one arm, one platter, one access at a time, and a read-ahead buffer
//! that fills between accesses.
//!
//! Seven times connect a command with the next one and with background work. The second line is the
//! path of a command; an arrow leads to a time that follows from another:
//!
//! ```text
//!             ┌────────────── free_ns ◀──────────────── max ◀───────────── progress.host_ns
//!             ▼                                          ▲                        ▲
//! arrival ─▶ max ─ overhead ─▶ max ─ seek, rotation, ─▶ progress.now_ns ─ interface ──┘
//!             │                 ▲    transfer            │        │
//!             │ cached write    │                        ▼        ▼
//!             ▼                 │                  released_ns  ahead.at_ns ─ read-ahead ─┐
//!         dirty_ns              │                        │        │ when it               │ if it
//!             │                 │                        ▼        ▼ has ended             │ is cut
//!             └─────────────────┼──────────────────────▶ max ◀────┘                       │ short
//!                               │                         │ write-back of a run           │
//!                               └───── busy_ns ◀──────────┴───────────────────────────────┘
//! ```
//!
//! Write-back and verification of writes also wait for `busy_ns` and end in it; verification begins
//! a pause after `free_ns`. In a write the interface comes first: `progress.host_ns` is the arrival
//! of the data for which the arm waits. `prepared_ns` is a duration: it shortens the overhead.

use crate::buffer::Segments;
use crate::command::{Access, Op, Phases, Service, Source};
use crate::geometry::{Geometry, SectorPosition};
use crate::platter::Platter;
use crate::profile::{DiskProfile, OverheadsNs, ReadAheadUntil, ReadAheadWhen};

use super::mechanics::Mechanics;
use super::positioning::Positioning;
use super::verify::Verify;
use super::write_cache::WriteCache;

/// Arm, platter and buffer. The state is that after the last access; later read-ahead is computed
/// when the next access arrives.
#[derive(Debug, Clone)]
pub(crate) struct Media {
    pub(super) geometry: Geometry,
    pub(super) platter: Platter,
    pub(super) mechanics: Mechanics,
    overheads: OverheadsNs,
    interface_sector_ns: u64,
    store_and_forward: bool,
    immediate_read: bool,
    until: ReadAheadUntil,
    when: ReadAheadWhen,
    read_ahead_sectors: u64,
    read_ahead_min_sectors: u64,
    keep_read: bool,
    keep_after_write: bool,
    keep_written: bool,
    segments: Segments,
    pub(super) ahead: Option<Ahead>,
    pub(super) arm: SectorPosition,
    /// The sector after which the arm stopped.
    pub(super) arm_sector: u64,
    /// The last operation of the arm.
    arm_op: Op,
    last: Op,
    pub(super) free_ns: u64,
    /// The time that the starting command has already spent in the drive. Its overhead and the
    /// transfer of its write data overlap with that time.
    prepared_ns: u64,
    /// The time at which the last command released the arm.
    pub(super) released_ns: u64,
    /// The time at which background work other than read-ahead releases the arm.
    pub(super) busy_ns: u64,
    /// Rotational latency and transfer at the end of that work.
    busy_rotation_ns: u64,
    busy_transfer_ns: u64,
    pub(super) verify: Option<Verify>,
    pub(super) write_cache: Option<WriteCache>,
    /// The time at which the write cache became non-empty.
    pub(super) dirty_ns: u64,
    /// Written-back sectors that can still be read from the cache.
    written: Segments,
}

/// The largest number of written-back runs that stay readable. Every read searches them.
const WRITTEN_SEGMENTS_MAX: usize = 64;

/// Read-ahead into a segment after the command that started it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    segment: usize,
    /// The next sector to read, and the sector at which read-ahead stops.
    pub(super) next: u64,
    pub(super) limit: u64,
    /// The sector up to which the drive reads ahead even if another command waits for the arm.
    least: u64,
    /// The time at which the sector before `next` had passed the head.
    pub(super) at_ns: u64,
}

/// The progress of a command through the media.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MediaProgress {
    pub(super) now_ns: u64,
    /// The time at which the host has the data read so far.
    pub(super) host_ns: u64,
    pub(super) seek_ns: u64,
    pub(super) rotation_ns: u64,
    pub(super) transfer_ns: u64,
    /// The cylinder of the first sector.
    pub(super) cylinder: Option<u32>,
    /// The sector after the track on which the command ends.
    pub(super) track_end: u64,
}

impl Media {
    pub(crate) fn new(profile: &DiskProfile) -> Media {
        let geometry = Geometry::new(profile);
        let platter = Platter::new(profile.revolution_ns, profile.phase_revolutions);
        let buffer = &profile.buffer;
        let segments = if buffer.enabled { buffer.segments } else { 0 };
        let write_cache = buffer.write_cache.as_ref().filter(|_| buffer.enabled);
        let written = write_cache.map_or(0, |cache| cache.runs.min(WRITTEN_SEGMENTS_MAX) as u32);
        Media {
            arm: geometry.locate(0),
            mechanics: Mechanics::new(profile, &platter),
            platter,
            overheads: profile.overheads,
            interface_sector_ns: u64::from(profile.interface_sector_ns),
            store_and_forward: profile.store_and_forward,
            immediate_read: buffer.enabled && buffer.immediate_read,
            until: buffer.read_ahead_until,
            when: buffer.read_ahead_when,
            read_ahead_sectors: u64::from(buffer.read_ahead_sectors),
            read_ahead_min_sectors: u64::from(buffer.read_ahead_min_sectors),
            keep_read: buffer.keep_read,
            keep_after_write: buffer.keep_after_write,
            keep_written: buffer.keep_written,
            segments: Segments::new(segments, buffer.segment_sectors, buffer.replacement),
            ahead: None,
            arm_sector: 0,
            arm_op: Op::Read,
            last: Op::Read,
            free_ns: 0,
            prepared_ns: 0,
            released_ns: 0,
            busy_ns: 0,
            busy_rotation_ns: 0,
            busy_transfer_ns: 0,
            write_cache: write_cache.map(WriteCache::new),
            dirty_ns: 0,
            written: Segments::new(written, buffer.segment_sectors, buffer.replacement),
            verify: profile.idle_verify_ms.map(Verify::new),
            geometry,
        }
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.geometry.capacity_sectors()
    }

    pub(crate) fn revolution_ns(&self) -> u64 {
        self.platter.revolution_ns()
    }

    /// Serves an access within the disk. With `fua` a write goes to the media.
    pub(crate) fn start(&mut self, now_ns: u64, access: &Access, fua: bool) -> Service {
        let now_ns = now_ns.max(self.free_ns);
        self.background_until(now_ns);
        let service = match access.op {
            Op::Read => self.read(now_ns, access),
            Op::Write if !fua && self.caches(access) => self.write_to_cache(now_ns, access),
            Op::Write => self.write(now_ns, access),
        };
        self.last = access.op;
        self.free_ns = service.finish_ns;
        debug_assert_eq!(service.phases.total_ns(), service.finish_ns - now_ns, "the phases are the service time");
        service
    }

    /// Serves an access that has been in the drive for `prepared_ns`. Command processing and the
    /// transfer of write data overlap with other commands.
    pub(super) fn start_prepared(&mut self, now_ns: u64, access: &Access, fua: bool, prepared_ns: u64) -> Service {
        self.prepared_ns = prepared_ns;
        let service = self.start(now_ns, access, fua);
        self.prepared_ns = 0;
        service
    }

    /// Serves an access that needs only the interface: a read hit, or a write that fits into the
    /// cache. `None` for any other access.
    pub(super) fn serve_held(&mut self, now_ns: u64, access: &Access) -> Option<Service> {
        let end = access.end();
        let service = match access.op {
            Op::Write if self.has_room(now_ns, access) => self.write_to_cache(now_ns, access),
            Op::Write => return None,
            Op::Read => match self.segments.find(access.sector).filter(|index| end <= self.segments.get(*index).end) {
                Some(index) => {
                    self.segments.touch(index);
                    self.read_buffer(now_ns, access, index)
                }
                None if self.holds_written(access.sector, end) => self.hit(now_ns, access),
                None => return None,
            },
        };
        self.last = access.op;
        Some(service)
    }

    /// The sectors of the segment that the last read filled.
    pub(super) fn filled(&self) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.ahead?.segment);
        Some((segment.start, segment.end))
    }

    /// The position of arm and platter at `now_ns`, or when the arm is released, for the choice of
    /// the next command.
    pub(super) fn positioning(&self, now_ns: u64) -> Positioning<'_> {
        let now_ns = now_ns.max(self.busy_ns);
        let stream = self.ahead.filter(|ahead| ahead.next < ahead.limit);
        let ahead_limit = stream.map_or(0, |ahead| ahead.limit);
        let stream = stream.map(|ahead| (self.segments.get(ahead.segment).start, ahead.next));
        Positioning {
            at_ns: now_ns,
            arm: &self.arm,
            mechanics: &self.mechanics,
            platter: &self.platter,
            overheads: &self.overheads,
            interface_sector_ns: self.interface_sector_ns,
            last: self.last,
            angle: self.platter.angle_at(now_ns),
            stream,
            ahead_limit,
        }
    }

    /// Makes the arm available at `free_ns`. A replay of recorded times follows the real drive and
    /// not the model.
    pub(crate) fn resume_at(&mut self, free_ns: u64) {
        self.free_ns = free_ns;
        self.released_ns = self.released_ns.min(free_ns);
    }

    /// Drops buffered data of the sectors `start..end`, so that the next read uses the media.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        self.ahead = None;
        self.segments.forget(start, end);
        self.written.forget(start, end);
    }

    /// Keeps the arm busy until `until_ns`.
    pub(super) fn hold_until(&mut self, until_ns: u64) {
        self.free_ns = self.free_ns.max(until_ns);
        self.released_ns = self.released_ns.max(until_ns);
    }

    /// The position of a sector.
    pub(crate) fn locate(&self, sector: u64) -> SectorPosition {
        self.geometry.locate(sector)
    }

    fn read(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        let Some(index) = self.segments.find(access.sector) else {
            if self.holds_written(access.sector, end) {
                return self.hit(now_ns, access);
            }
            return match self.ahead.filter(|ahead| self.reads_on_to(now_ns, access, *ahead)) {
                Some(ahead) => self.read_stream(now_ns, access, ahead.segment, ahead),
                None => self.read_media(now_ns, access, None),
            };
        };
        self.segments.touch(index);
        let held = self.segments.get(index).end;
        if end <= held {
            return self.read_buffer(now_ns, access, index);
        }
        match self.ahead {
            Some(ahead) if ahead.segment == index && ahead.next < ahead.limit => {
                self.read_stream(now_ns, access, index, ahead)
            }
            _ => self.read_media(now_ns, access, Some((index, held))),
        }
    }

    /// Returns true if the running read-ahead will read the first sector of a command, and no later
    /// than the arm could position for it.
    fn reads_on_to(&self, now_ns: u64, access: &Access, ahead: Ahead) -> bool {
        if access.sector < ahead.next || access.sector > ahead.limit || ahead.next >= ahead.limit {
            return false;
        }
        let (_, reached) = self.advanced(Ahead { limit: access.sector, ..ahead }, u64::MAX);
        let spot = self.geometry.locate(access.sector);
        let ready_ns = now_ns + self.overheads.miss(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let moved_ns = ready_ns.max(self.busy_ns) + self.mechanics.move_ns(&self.arm, &spot, Op::Read);
        reached.at_ns <= moved_ns + self.platter.wait_ns(moved_ns, spot.angle)
    }

    /// Serves a read hit: overhead and interface. Read-ahead continues after the data that the
    /// host has taken.
    fn read_buffer(&mut self, now_ns: u64, access: &Access, index: usize) -> Service {
        if let Some(ahead) = self.ahead.filter(|ahead| ahead.segment == index) {
            let stopped = ahead.next >= ahead.limit;
            let limit = self.read_ahead_limit(access, false, None).max(ahead.limit);
            // A read-ahead that stopped with a full segment resumes at this command, not in the
            // past.
            let at_ns = if stopped { now_ns.max(ahead.at_ns).max(self.busy_ns) } else { ahead.at_ns };
            self.ahead = Some(Ahead { limit, at_ns, ..ahead });
        }
        self.drop_read(index, access.end());
        self.hit(now_ns, access)
    }

    /// Drops the sectors of a segment that the host has read, if the drive does not keep them.
    fn drop_read(&mut self, index: usize, end: u64) {
        if !self.keep_read {
            self.segments.drop_before(index, end);
        }
    }

    /// Drops sectors that were read ahead before a write, if the drive does not keep them.
    fn drop_ahead(&mut self) {
        if !self.keep_after_write {
            self.ahead = None;
            self.segments.clear();
        }
    }

    /// Service with overhead and interface alone.
    pub(super) fn hit(&self, now_ns: u64, access: &Access) -> Service {
        let overhead_ns = self.overheads.hit(access.op, self.last).saturating_sub(self.prepared_ns);
        let overhead_ns = overhead_ns + u64::from(access.sectors) * self.interface_sector_ns;
        let phases = Phases { overhead_ns, ..Phases::default() };
        let cylinder = self.geometry.locate(access.sector).cylinder;
        Service { finish_ns: now_ns + overhead_ns, phases, source: Source::Buffer, cylinder }
    }

    /// Returns true if the sectors were written through the cache and are still in it.
    fn holds_written(&mut self, start: u64, end: u64) -> bool {
        if !self.keep_written {
            return false;
        }
        if let Some(index) = self.written.find(start).filter(|index| self.written.get(*index).end >= end) {
            self.written.touch(index);
            return true;
        }
        self.write_cache.as_ref().is_some_and(|cache| cache.holds(start, end))
    }

    /// Serves a read that the running read-ahead will complete: no seek, and the media hides the
    /// overhead.
    fn read_stream(&mut self, now_ns: u64, access: &Access, index: usize, ahead: Ahead) -> Service {
        let end = access.end();
        let overhead_ns = self.overheads.hit(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let from_media = end - ahead.next.max(access.sector);
        let source = if access.sector < ahead.next { Source::Both } else { Source::Media };
        let mut ahead = Ahead { limit: end, ..ahead };
        self.advance(&mut ahead, u64::MAX);
        self.segments.fill(index, end);
        self.drop_read(index, end);
        let media_ns = ahead.at_ns.max(now_ns + overhead_ns);
        let interface_ns = u64::from(access.sectors) * self.interface_sector_ns;
        let following_ns = if self.store_and_forward { interface_ns } else { self.interface_sector_ns };
        let finish_ns = (media_ns + following_ns).max(now_ns + overhead_ns + interface_ns);
        ahead.limit = self.read_ahead_limit(access, false, None);
        ahead.least = (end + self.read_ahead_min_sectors).min(ahead.limit);
        self.ahead = Some(ahead);
        let spot = self.geometry.locate(access.sector);
        let waited_ns = media_ns - now_ns - overhead_ns;
        let passing_ns = spot_time(&self.platter, &spot, from_media);
        let transfer_ns = waited_ns.min(passing_ns);
        let phases = Phases {
            overhead_ns: finish_ns - now_ns - waited_ns,
            seek_ns: 0,
            rotation_ns: waited_ns - transfer_ns,
            transfer_ns,
            ..Phases::default()
        };
        Service { finish_ns, phases, source, cylinder: spot.cylinder }
    }

    /// Reads from the media: all sectors, or the rest after `held`, a segment and the sector at
    /// which its data end.
    fn read_media(&mut self, now_ns: u64, access: &Access, held: Option<(usize, u64)>) -> Service {
        let end = access.end();
        let first = held.map_or(access.sector, |(_, held)| held.max(access.sector));
        let source = if first > access.sector { Source::Both } else { Source::Media };
        self.end_read_ahead();
        let interface_ns = u64::from(access.sectors) * self.interface_sector_ns;
        let overhead_ns = self.overheads.miss(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let mut progress = self.take_arm(now_ns + overhead_ns);
        progress.host_ns = progress.now_ns + (first - access.sector) * self.interface_sector_ns;
        self.pass(&mut progress, first, end, Op::Read);
        let segment = match held {
            Some((index, _)) => Some(index),
            None => self.segments.replace(access.sector),
        };
        if let Some(segment) = segment {
            self.segments.fill(segment, end);
            self.drop_read(segment, end);
            let limit = match self.when {
                ReadAheadWhen::Sequential if held.is_none() => end,
                _ => self.read_ahead_limit(access, held.is_none(), Some(progress.track_end)),
            };
            let least = (end + self.read_ahead_min_sectors).min(limit);
            self.ahead = Some(Ahead { segment, next: end, limit, least, at_ns: progress.now_ns });
        }
        self.released_ns = progress.now_ns;
        let stored_ns = if self.store_and_forward { progress.now_ns + interface_ns } else { 0 };
        let finish_ns = progress.host_ns.max(progress.now_ns).max(stored_ns);
        self.service(now_ns, finish_ns, &progress, source, access)
    }

    fn write(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        self.end_read_ahead();
        self.drop_ahead();
        self.supersede(access.sector, end);
        let overhead_ns = self.overheads.miss(Op::Write, self.last);
        let arrived_ns =
            |sectors: u64| now_ns + (overhead_ns + sectors * self.interface_sector_ns).saturating_sub(self.prepared_ns);
        let all_ns = arrived_ns(u64::from(access.sectors));
        let mut progress = self.take_arm(now_ns + overhead_ns.saturating_sub(self.prepared_ns));
        // The arm moves while the data arrive. The first sector is written after its data have
        // arrived.
        progress.host_ns = arrived_ns(1);
        self.pass(&mut progress, access.sector, end, Op::Write);
        // The media waits for a host that is slower. The arrival of the data then determines the
        // end.
        let finish_ns = progress.now_ns.max(all_ns);
        self.released_ns = progress.now_ns;
        if let Some(verify) = &mut self.verify {
            verify.add(access);
        }
        self.service(now_ns, finish_ns, &progress, Source::Media, access)
    }

    /// A write that completes in the cache: at once if there is space, or after write-back has made
    /// space. Read-ahead of other sectors continues.
    pub(super) fn write_to_cache(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        let (room_ns, waited) = self.wait_for_space(now_ns, access.sector, end);
        let stale = |ahead: &Ahead| access.sector < ahead.limit && self.segments.get(ahead.segment).start < end;
        self.ahead = self.ahead.filter(|ahead| !stale(ahead));
        self.segments.forget(access.sector, end);
        self.drop_ahead();
        self.add_written(access.sector, end);
        if let Some(cache) = &mut self.write_cache {
            if cache.is_empty() {
                self.dirty_ns = room_ns + self.overheads.hit(Op::Write, self.last);
            }
            cache.add(access.sector, end);
        }
        let service = self.hit(room_ns, access);
        let phases = Phases { overhead_ns: service.phases.overhead_ns, ..waited };
        Service { phases, ..service }
    }

    /// Keeps written-back sectors readable until another write needs the space.
    fn add_written(&mut self, start: u64, end: u64) {
        let continued = self.written.find(start).filter(|index| self.written.get(*index).end == start);
        if continued.is_none() {
            self.written.forget(start, end);
        }
        if let Some(index) = continued.or_else(|| self.written.replace(start)) {
            self.written.touch(index);
            self.written.fill(index, end);
        }
    }

    /// Drops every copy of sectors that are being written to the media.
    fn supersede(&mut self, start: u64, end: u64) {
        self.segments.forget(start, end);
        self.written.forget(start, end);
        if let Some(cache) = &mut self.write_cache {
            cache.remove(start, end);
        }
    }

    /// Takes the arm for a command that needs it from `ready_ns` on, after the arm is released.
    fn take_arm(&self, ready_ns: u64) -> MediaProgress {
        let begun_ns = ready_ns.max(self.busy_ns);
        let Phases { seek_ns, rotation_ns, transfer_ns, .. } = self.phases_of_wait(ready_ns);
        let cylinder = None;
        MediaProgress { now_ns: begun_ns, host_ns: begun_ns, seek_ns, rotation_ns, transfer_ns, cylinder, track_end: 0 }
    }

    /// Keeps the arm busy until `busy_ns` with work that ends with the given rotational latency and
    /// transfer.
    pub(super) fn set_busy(&mut self, busy_ns: u64, rotation_ns: u64, transfer_ns: u64) {
        (self.busy_ns, self.busy_rotation_ns, self.busy_transfer_ns) = (busy_ns, rotation_ns, transfer_ns);
    }

    /// The work of the arm from `from_ns` until background work releases it.
    pub(super) fn phases_of_wait(&self, from_ns: u64) -> Phases {
        let wait_ns = self.busy_ns.saturating_sub(from_ns);
        let transfer_ns = wait_ns.min(self.busy_transfer_ns);
        let rotation_ns = (wait_ns - transfer_ns).min(self.busy_rotation_ns);
        Phases { seek_ns: wait_ns - transfer_ns - rotation_ns, rotation_ns, transfer_ns, ..Phases::default() }
    }

    fn service(
        &self,
        now_ns: u64,
        finish_ns: u64,
        progress: &MediaProgress,
        source: Source,
        access: &Access,
    ) -> Service {
        let MediaProgress { seek_ns, rotation_ns, transfer_ns, .. } = *progress;
        let overhead_ns = (finish_ns - now_ns).saturating_sub(seek_ns + rotation_ns + transfer_ns);
        let phases = Phases { overhead_ns, seek_ns, rotation_ns, transfer_ns, ..Phases::default() };
        let on_media = if source == Source::Media { progress.cylinder } else { None };
        let cylinder = on_media.unwrap_or_else(|| self.geometry.locate(access.sector).cylinder);
        Service { finish_ns, phases, source, cylinder }
    }

    /// Passes the sectors `from..end` under the head, track by track. The arm ends over the last
    /// one.
    pub(super) fn pass(&mut self, progress: &mut MediaProgress, from: u64, end: u64, op: Op) {
        let mut next = from;
        while next < end {
            let spot = self.geometry.locate(next);
            let sectors = u64::from(spot.room).min(end - next) as u32;
            let move_ns = self.mechanics.move_ns(&self.arm, &spot, op);
            let move_ns = move_ns.max(self.mechanics.change_ns(self.arm_op, op));
            self.arm_op = op;
            progress.cylinder = progress.cylinder.or(Some(spot.cylinder));
            progress.seek_ns += move_ns;
            progress.now_ns += move_ns;
            if op == Op::Write && next == from {
                // The arm waits for data that arrive later. The wait counts as interface time.
                progress.now_ns = progress.now_ns.max(progress.host_ns);
            }
            let whole = next == from && next + u64::from(sectors) == end;
            self.pass_track(progress, &spot, sectors, op == Op::Read && self.immediate_read && whole);
            self.arm = spot;
            progress.track_end = next + u64::from(spot.room);
            next += u64::from(sectors);
        }
        self.arm_sector = end;
    }

    /// Waits for `spot` and passes `sectors` under the head. With `anywhere` a read may begin in
    /// their middle: the tail is read first and the head after the rest of one revolution.
    fn pass_track(&mut self, progress: &mut MediaProgress, spot: &SectorPosition, sectors: u32, anywhere: bool) {
        let span = spot.span(sectors);
        let passing_ns = self.platter.turn_ns(span);
        let wait_ns = self.platter.wait_ns(progress.now_ns, spot.angle);
        let revolution_ns = self.platter.revolution_ns();
        let landed_within = anywhere && wait_ns + passing_ns > revolution_ns;
        let wait_ns = if landed_within { revolution_ns - passing_ns } else { wait_ns };
        progress.rotation_ns += wait_ns;
        progress.transfer_ns += passing_ns;
        let begun_ns = progress.now_ns + wait_ns;
        progress.now_ns = begun_ns + passing_ns;
        // The interface sends each sector after it was read, or takes its own time from the first
        // sector on.
        let first_ns = begun_ns + self.platter.turn_ns(spot.span(1));
        let interface_ns = u64::from(sectors) * self.interface_sector_ns;
        let followed_ns = progress.now_ns + self.interface_sector_ns;
        progress.host_ns = (progress.host_ns.max(first_ns) + interface_ns).max(followed_ns);
    }

    /// The end of read-ahead after a command: the end of the segment, the limit of the drive, or
    /// the track or cylinder of the policy. `track_end` is the end of the last track of the
    /// command, if known.
    ///
    /// A command that starts a segment keeps its own sectors in it. Later ones keep a quarter of a
    /// segment that the host has read, if the drive keeps such sectors at all.
    fn read_ahead_limit(&self, access: &Access, starts: bool, track_end: Option<u64>) -> u64 {
        let end = access.end();
        // A request of more than half a segment is overwritten from its beginning, which the host
        // has taken. Drives stream with requests of any size.
        let segment = self.segments.segment_sectors();
        let full = match (self.keep_read, starts) {
            (true, true) => (access.sector + segment).max(end + segment / 2),
            (true, false) => end + segment - segment / 4,
            (false, _) => end + segment,
        };
        let limit = full.min(end + self.read_ahead_sectors).min(self.capacity_sectors());
        let track_end = || track_end.unwrap_or_else(|| end - 1 + u64::from(self.geometry.locate(end - 1).room));
        match self.until {
            ReadAheadUntil::Segment => limit,
            ReadAheadUntil::Track => limit.min(track_end()),
            ReadAheadUntil::NextTrack => {
                let track_end = track_end();
                let next_room = if track_end < limit { self.geometry.locate(track_end).room } else { 0 };
                limit.min(track_end + u64::from(next_room))
            }
            ReadAheadUntil::Cylinder => limit.min(self.cylinder_end(end - 1, limit)),
        }
    }

    fn cylinder_end(&self, sector: u64, limit: u64) -> u64 {
        let spot = self.geometry.locate(sector);
        let mut end = sector + u64::from(spot.room);
        while end < limit {
            let next = self.geometry.locate(end);
            if next.cylinder != spot.cylinder {
                break;
            }
            end += u64::from(next.room);
        }
        end
    }

    /// Ends read-ahead because the arm is needed, after the sectors that the drive reads in any
    /// case.
    pub(super) fn end_read_ahead(&mut self) {
        let Some(ahead) = self.ahead.take().filter(|ahead| ahead.next < ahead.least) else { return };
        let (arm, ended) = self.advanced(Ahead { limit: ahead.least, ..ahead }, u64::MAX);
        self.arm = arm;
        self.segments.fill(ended.segment, ended.next);
        self.set_busy(self.busy_ns.max(ended.at_ns), 0, ended.at_ns - ahead.at_ns);
    }

    /// Computes the progress of read-ahead until `now_ns`.
    pub(super) fn read_ahead_until(&mut self, now_ns: u64) {
        if let Some(mut ahead) = self.ahead
            && ahead.next < ahead.limit
            && ahead.at_ns < now_ns
        {
            self.advance(&mut ahead, now_ns);
            self.segments.fill(ahead.segment, ahead.next);
            self.ahead = Some(ahead);
        }
    }

    /// Reads on to the limit, but not beyond `until_ns`. The arm follows.
    fn advance(&mut self, ahead: &mut Ahead, until_ns: u64) {
        (self.arm, *ahead) = self.advanced(*ahead, until_ns);
    }

    /// The positions of arm and read-ahead after reading on to the limit, but not beyond
    /// `until_ns`.
    fn advanced(&self, mut ahead: Ahead, until_ns: u64) -> (SectorPosition, Ahead) {
        let mut arm = self.arm;
        while ahead.next < ahead.limit {
            let spot = self.geometry.locate(ahead.next);
            let moved_ns = ahead.at_ns + self.mechanics.move_ns(&arm, &spot, Op::Read);
            let begun_ns = moved_ns + self.platter.wait_ns(moved_ns, spot.angle);
            if begun_ns >= until_ns {
                break;
            }
            let sectors = u64::from(spot.room).min(ahead.limit - ahead.next) as u32;
            let end_ns = begun_ns + self.platter.turn_ns(spot.span(sectors));
            arm = spot;
            if end_ns > until_ns {
                let read = spot.sectors_in(self.platter.angle_in(until_ns - begun_ns)).min(sectors);
                ahead.at_ns = begun_ns + self.platter.turn_ns(spot.span(read));
                ahead.next += u64::from(read);
                break;
            }
            ahead.at_ns = end_ns;
            ahead.next += u64::from(sectors);
        }
        (arm, ahead)
    }
}

fn spot_time(platter: &Platter, spot: &SectorPosition, sectors: u64) -> u64 {
    platter.turn_ns(spot.span(1)).saturating_mul(sectors)
}
