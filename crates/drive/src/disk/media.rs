//! The works of a disk: one arm, one platter, one access at a time, and a read-ahead buffer that fills between accesses.

use crate::buffer::Segments;
use crate::command::{Access, Op, Phases, Service, Source};
use crate::geometry::{Geometry, Spot};
use crate::platter::Platter;
use crate::profile::{DiskProfile, OverheadsNs, ReadAheadUntil, ReadAheadWhen};

use super::mechanics::Mechanics;
use super::positioning::Positioning;
use super::verify::Verify;
use super::write_cache::WriteCache;

/// Arm, platter and buffer. Their state is that of the last access; what the read-ahead did since then is worked out when the next
/// one arrives.
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
    segments: Segments,
    pub(super) ahead: Option<Ahead>,
    pub(super) arm: Spot,
    /// The sector behind which the arm stopped.
    pub(super) arm_sector: u64,
    /// What it did last.
    arm_op: Op,
    last: Op,
    pub(super) free_ns: u64,
    /// How long the command that begins has been in the drive already: so much of its overhead is done, and so many of its
    /// data have come.
    prepared_ns: u64,
    /// When the last command let go of the arm.
    pub(super) released_ns: u64,
    /// When the arm is free of what the drive does with it for itself, read-ahead apart.
    pub(super) busy_ns: u64,
    pub(super) verify: Option<Verify>,
    pub(super) write_cache: Option<WriteCache>,
    /// When the write cache was last filled from empty.
    pub(super) dirty_ns: u64,
    /// What was written through the cache and can still be read from it.
    written: Segments,
}

/// The most runs that stay readable once they are written: each is looked at by every read.
const WRITTEN_SEGMENTS_MAX: usize = 64;

/// Reading on into a segment after the command that started it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    segment: usize,
    /// The next sector to be read, and the one at which to stop.
    pub(super) next: u64,
    pub(super) limit: u64,
    /// When the sector before `next` had passed the head.
    pub(super) at_ns: u64,
}

/// A command on its way through the media.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    pub(super) now_ns: u64,
    /// When the host has what was read so far.
    pub(super) host_ns: u64,
    pub(super) seek_ns: u64,
    pub(super) rotation_ns: u64,
    pub(super) transfer_ns: u64,
    /// The cylinder on which it began.
    pub(super) cylinder: Option<u32>,
    /// The sector after the last of the track on which it ends.
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
            segments: Segments::new(segments, buffer.segment_sectors, buffer.replacement),
            ahead: None,
            arm_sector: 0,
            arm_op: Op::Read,
            last: Op::Read,
            free_ns: 0,
            prepared_ns: 0,
            released_ns: 0,
            busy_ns: 0,
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

    /// Serves an access that is known to be within the disk; with `fua` a write goes to the media.
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

    /// Serves an access that has been in the drive for `prepared_ns`: command processing, and the data of a write, go on while
    /// the works are at other commands.
    pub(super) fn start_prepared(&mut self, now_ns: u64, access: &Access, fua: bool, prepared_ns: u64) -> Service {
        self.prepared_ns = prepared_ns;
        let service = self.start(now_ns, access, fua);
        self.prepared_ns = 0;
        service
    }

    /// Serves what needs the interface alone, wherever the arm is: a read whose sectors are all in the buffer, a write for which the
    /// write cache has room; `None` for any other.
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

    /// Where arm and platter are, to choose the next command by, at `now_ns` or when the drive lets go of the arm.
    pub(super) fn positioning(&self, now_ns: u64) -> Positioning<'_> {
        let now_ns = now_ns.max(self.busy_ns);
        let stream = self.ahead.filter(|ahead| ahead.next < ahead.limit);
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
        }
    }

    /// Lets the next command begin when it arrives, whatever the model thought of the last one: a replay of recorded
    /// times goes by what the real drive did.
    pub(crate) fn resume_at(&mut self, free_ns: u64) {
        self.free_ns = free_ns;
        self.released_ns = self.released_ns.min(free_ns);
    }

    /// Drops what is buffered of the sectors `start..end`: they have to come from the media.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        self.ahead = None;
        self.segments.forget(start, end);
        self.written.forget(start, end);
    }

    /// Keeps the works with the access before until `until_ns`.
    pub(super) fn hold_until(&mut self, until_ns: u64) {
        self.free_ns = self.free_ns.max(until_ns);
        self.released_ns = self.released_ns.max(until_ns);
    }

    /// The place of a sector.
    pub(crate) fn locate(&self, sector: u64) -> Spot {
        self.geometry.locate(sector)
    }

    fn read(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        let Some(index) = self.segments.find(access.sector) else {
            if self.holds_written(access.sector, end) {
                return self.hit(now_ns, access);
            }
            return self.read_media(now_ns, access, None);
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

    /// All of it lies in the buffer: overhead and interface. Read-ahead goes on behind what the host has taken.
    fn read_buffer(&mut self, now_ns: u64, access: &Access, index: usize) -> Service {
        if let Some(ahead) = self.ahead.filter(|ahead| ahead.segment == index) {
            let stopped = ahead.next >= ahead.limit;
            let limit = self.read_ahead_limit(access, None).max(ahead.limit);
            // A read-ahead that had stopped, its segment full, wakes up at this command, not in the past.
            let at_ns = if stopped { now_ns.max(ahead.at_ns).max(self.busy_ns) } else { ahead.at_ns };
            self.ahead = Some(Ahead { limit, at_ns, ..ahead });
        }
        self.hit(now_ns, access)
    }

    /// Overhead and interface: neither arm nor platter is asked.
    pub(super) fn hit(&self, now_ns: u64, access: &Access) -> Service {
        let overhead_ns = self.overheads.hit(access.op, self.last).saturating_sub(self.prepared_ns);
        let overhead_ns = overhead_ns + u64::from(access.sectors) * self.interface_sector_ns;
        let phases = Phases { overhead_ns, ..Phases::default() };
        let cylinder = self.geometry.locate(access.sector).cylinder;
        Service { finish_ns: now_ns + overhead_ns, phases, source: Source::Buffer, cylinder }
    }

    /// Whether the sectors were written through the cache and are still in it.
    fn holds_written(&mut self, start: u64, end: u64) -> bool {
        if let Some(index) = self.written.find(start).filter(|index| self.written.get(*index).end >= end) {
            self.written.touch(index);
            return true;
        }
        self.write_cache.as_ref().is_some_and(|cache| cache.holds(start, end))
    }

    /// The head is already reading towards the rest of it: no seek, and the command's overhead is hidden by the media.
    fn read_stream(&mut self, now_ns: u64, access: &Access, index: usize, ahead: Ahead) -> Service {
        let end = access.end();
        let overhead_ns = self.overheads.hit(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let from_media = end - ahead.next.max(access.sector);
        let source = if access.sector < ahead.next { Source::Both } else { Source::Media };
        let mut ahead = Ahead { limit: end, ..ahead };
        self.advance(&mut ahead, u64::MAX);
        self.segments.fill(index, end);
        let media_ns = ahead.at_ns.max(now_ns + overhead_ns);
        let interface_ns = u64::from(access.sectors) * self.interface_sector_ns;
        let following_ns = if self.store_and_forward { interface_ns } else { self.interface_sector_ns };
        let finish_ns = (media_ns + following_ns).max(now_ns + overhead_ns + interface_ns);
        ahead.limit = self.read_ahead_limit(access, None);
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

    /// From the media, all of it or (with `held`: a segment, and the sector up to which it reaches) the rest.
    fn read_media(&mut self, now_ns: u64, access: &Access, held: Option<(usize, u64)>) -> Service {
        let end = access.end();
        let first = held.map_or(access.sector, |(_, held)| held.max(access.sector));
        let source = if first > access.sector { Source::Both } else { Source::Media };
        self.ahead = None;
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
            let limit = match self.when {
                ReadAheadWhen::Sequential if held.is_none() => end,
                _ => self.read_ahead_limit(access, Some(progress.track_end)),
            };
            self.ahead = Some(Ahead { segment, next: end, limit, at_ns: progress.now_ns });
        }
        self.released_ns = progress.now_ns;
        let stored_ns = if self.store_and_forward { progress.now_ns + interface_ns } else { 0 };
        let finish_ns = progress.host_ns.max(progress.now_ns).max(stored_ns);
        self.service(now_ns, finish_ns, &progress, source, access)
    }

    fn write(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        self.ahead = None;
        self.supersede(access.sector, end);
        let overhead_ns = self.overheads.miss(Op::Write, self.last);
        let arrived_ns =
            |sectors: u64| now_ns + (overhead_ns + sectors * self.interface_sector_ns).saturating_sub(self.prepared_ns);
        let all_ns = arrived_ns(u64::from(access.sectors));
        let mut progress = self.take_arm(now_ns + overhead_ns.saturating_sub(self.prepared_ns));
        // The arm moves while the data arrive; the first sector is written once it is there.
        progress.host_ns = arrived_ns(1);
        self.pass(&mut progress, access.sector, end, Op::Write);
        // A host slower than the media would starve the head: its data set the end then.
        let finish_ns = progress.now_ns.max(all_ns);
        self.released_ns = progress.now_ns;
        if let Some(verify) = &mut self.verify {
            verify.add(access);
        }
        self.service(now_ns, finish_ns, &progress, Source::Media, access)
    }

    /// A write that ends when the cache has its data: at once if there is room, or when enough has gone to the media. Reading ahead
    /// goes on, unless it is of what is written.
    pub(super) fn write_to_cache(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.end();
        let room_ns = self.make_room(now_ns, access.sector, end);
        let stale = |ahead: &Ahead| access.sector < ahead.limit && self.segments.get(ahead.segment).start < end;
        self.ahead = self.ahead.filter(|ahead| !stale(ahead));
        self.segments.forget(access.sector, end);
        self.keep_written(access.sector, end);
        if let Some(cache) = &mut self.write_cache {
            if cache.is_empty() {
                self.dirty_ns = room_ns + self.overheads.hit(Op::Write, self.last);
            }
            cache.add(access.sector, end);
        }
        let service = self.hit(room_ns, access);
        let phases = Phases { seek_ns: room_ns - now_ns, ..service.phases };
        Service { phases, ..service }
    }

    /// Lets the sectors be read from where they were put on their way to the media, as long as no other write needs the place.
    fn keep_written(&mut self, start: u64, end: u64) {
        let continued = self.written.find(start).filter(|index| self.written.get(*index).end == start);
        if continued.is_none() {
            self.written.forget(start, end);
        }
        if let Some(index) = continued.or_else(|| self.written.replace(start)) {
            self.written.touch(index);
            self.written.fill(index, end);
        }
    }

    /// Forgets every copy of the sectors: they are being written on the media.
    fn supersede(&mut self, start: u64, end: u64) {
        self.segments.forget(start, end);
        self.written.forget(start, end);
        if let Some(cache) = &mut self.write_cache {
            cache.remove(start, end);
        }
    }

    /// A command that will need the arm from `ready_ns` on gets it when the drive lets go of it.
    fn take_arm(&self, ready_ns: u64) -> Progress {
        let begun_ns = ready_ns.max(self.busy_ns);
        Progress { now_ns: begun_ns, host_ns: begun_ns, seek_ns: begun_ns - ready_ns, ..Progress::default() }
    }

    fn service(&self, now_ns: u64, finish_ns: u64, progress: &Progress, source: Source, access: &Access) -> Service {
        let Progress { seek_ns, rotation_ns, transfer_ns, .. } = *progress;
        let overhead_ns = (finish_ns - now_ns).saturating_sub(seek_ns + rotation_ns + transfer_ns);
        let phases = Phases { overhead_ns, seek_ns, rotation_ns, transfer_ns, ..Phases::default() };
        let on_media = if source == Source::Media { progress.cylinder } else { None };
        let cylinder = on_media.unwrap_or_else(|| self.geometry.locate(access.sector).cylinder);
        Service { finish_ns, phases, source, cylinder }
    }

    /// Brings the sectors `from..end` past the head, track by track, and leaves the arm over the last one.
    pub(super) fn pass(&mut self, progress: &mut Progress, from: u64, end: u64, op: Op) {
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
                // Data that arrive later than the arm hold it up; that is the interface's time.
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

    /// Waits for `spot` and lets `sectors` pass. With `anywhere` the reading may begin in their middle: the tail is read
    /// first and the head when it comes round, one revolution in all.
    fn pass_track(&mut self, progress: &mut Progress, spot: &Spot, sectors: u32, anywhere: bool) {
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
        // The interface follows a sector behind the head, or takes its own time from the first sector on.
        let first_ns = begun_ns + self.platter.turn_ns(spot.span(1));
        let interface_ns = u64::from(sectors) * self.interface_sector_ns;
        let followed_ns = progress.now_ns + self.interface_sector_ns;
        progress.host_ns = (progress.host_ns.max(first_ns) + interface_ns).max(followed_ns);
    }

    /// Where read-ahead stops after a command: its segment full, the drive's limit, or the policy's track or cylinder.
    /// `track_end` is the end of the command's last track, if it is known.
    fn read_ahead_limit(&self, access: &Access, track_end: Option<u64>) -> u64 {
        let end = access.end();
        // A request that fills more than half of its segment is overwritten from its beginning, which the host has taken: drives
        // stream with requests of any size.
        let segment = self.segments.segment_sectors();
        let full = (access.sector + segment).max(end + segment / 2);
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

    /// Works out what the read-ahead has read by `now_ns`.
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

    /// Reads on to the limit, but not past `until_ns`; the arm follows.
    fn advance(&mut self, ahead: &mut Ahead, until_ns: u64) {
        while ahead.next < ahead.limit {
            let spot = self.geometry.locate(ahead.next);
            let moved_ns = ahead.at_ns + self.mechanics.move_ns(&self.arm, &spot, Op::Read);
            let begun_ns = moved_ns + self.platter.wait_ns(moved_ns, spot.angle);
            if begun_ns >= until_ns {
                return;
            }
            let sectors = u64::from(spot.room).min(ahead.limit - ahead.next) as u32;
            let end_ns = begun_ns + self.platter.turn_ns(spot.span(sectors));
            self.arm = spot;
            if end_ns > until_ns {
                let read = spot.sectors_in(self.platter.angle_in(until_ns - begun_ns)).min(sectors);
                ahead.at_ns = begun_ns + self.platter.turn_ns(spot.span(read));
                ahead.next += u64::from(read);
                return;
            }
            ahead.at_ns = end_ns;
            ahead.next += u64::from(sectors);
        }
    }
}

fn spot_time(platter: &Platter, spot: &Spot, sectors: u64) -> u64 {
    platter.turn_ns(spot.span(1)).saturating_mul(sectors)
}
