//! The works of a disk: one arm, one platter, one access at a time, and a read-ahead buffer that fills between accesses.

use crate::buffer::Segments;
use crate::geometry::{Geometry, Spot};
use crate::platter::Platter;
use crate::profile::{DiskProfile, OverheadsNs, ReadAheadUntil};
use crate::{Access, Op, Phases, Service, Source};

use super::mechanics::Mechanics;
use super::positioning::Positioning;
use super::verify::Verify;

/// Arm, platter and buffer. Their state is that of the last access; what the read-ahead did since then is worked out when the next
/// one arrives.
#[derive(Debug, Clone)]
pub(crate) struct Media {
    geometry: Geometry,
    platter: Platter,
    mechanics: Mechanics,
    overheads: OverheadsNs,
    interface_sector_ns: u64,
    immediate_read: bool,
    until: ReadAheadUntil,
    read_ahead_sectors: u64,
    segments: Segments,
    ahead: Option<Ahead>,
    arm: Spot,
    last: Op,
    free_ns: u64,
    /// How long the command that begins has been in the drive already: so much of its overhead is done, and so many of its
    /// data have come.
    prepared_ns: u64,
    verify: Option<Verify>,
}

/// Reading on into a segment after the command that started it.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    segment: usize,
    /// The next sector to be read, and the one at which to stop.
    next: u64,
    limit: u64,
    /// When the sector before `next` had passed the head.
    at_ns: u64,
}

/// A command on its way through the media.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    now_ns: u64,
    /// When the host has what was read so far.
    host_ns: u64,
    seek_ns: u64,
    rotation_ns: u64,
    transfer_ns: u64,
    /// The cylinder on which it began.
    cylinder: Option<u32>,
    /// The sector after the last of the track on which it ends.
    track_end: u64,
}

impl Media {
    pub(crate) fn new(profile: &DiskProfile) -> Media {
        let geometry = Geometry::new(profile);
        let buffer = &profile.buffer;
        let segments = if buffer.enabled { buffer.segments } else { 0 };
        Media {
            arm: geometry.locate(0),
            platter: Platter::new(profile.revolution_ns, profile.phase_revolutions),
            mechanics: Mechanics::new(profile),
            overheads: profile.overheads,
            interface_sector_ns: u64::from(profile.interface_sector_ns),
            immediate_read: buffer.enabled && buffer.immediate_read,
            until: buffer.read_ahead_until,
            read_ahead_sectors: u64::from(buffer.read_ahead_sectors),
            segments: Segments::new(segments, buffer.segment_sectors),
            ahead: None,
            last: Op::Read,
            free_ns: 0,
            prepared_ns: 0,
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

    /// Serves an access that is known to be within the disk.
    pub(crate) fn start(&mut self, now_ns: u64, access: &Access) -> Service {
        let now_ns = now_ns.max(self.free_ns);
        self.read_ahead_until(now_ns);
        let arrived_ns = now_ns;
        let now_ns = self.verify_until(now_ns);
        let service = match access.op {
            Op::Read => self.read(now_ns, access),
            Op::Write => self.write(now_ns, access),
        };
        self.last = access.op;
        self.free_ns = service.finish_ns;
        if let (Op::Write, Some(verify)) = (access.op, &mut self.verify) {
            verify.add(access);
        }
        let phases = Phases { seek_ns: service.phases.seek_ns + (now_ns - arrived_ns), ..service.phases };
        debug_assert_eq!(phases.total_ns(), service.finish_ns - arrived_ns, "the phases are the service time");
        Service { phases, ..service }
    }

    /// Serves an access that has been in the drive for `prepared_ns`: command processing, and the data of a write, go on while
    /// the works are at other commands.
    pub(super) fn start_prepared(&mut self, now_ns: u64, access: &Access, prepared_ns: u64) -> Service {
        self.prepared_ns = prepared_ns;
        let service = self.start(now_ns, access);
        self.prepared_ns = 0;
        service
    }

    /// Serves a read whose sectors are all in the buffer, over the interface alone; `None` for any other.
    pub(super) fn serve_held(&mut self, now_ns: u64, access: &Access) -> Option<Service> {
        if access.op == Op::Write {
            return None;
        }
        let index = self.segments.find(access.sector)?;
        if access.sector + u64::from(access.sectors) > self.segments.get(index).end {
            return None;
        }
        self.segments.touch(index);
        let service = self.read_buffer(now_ns, access, index);
        self.last = Op::Read;
        Some(service)
    }

    /// The sectors of the segment that the last read filled.
    pub(super) fn filled(&self) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.ahead?.segment);
        Some((segment.start, segment.end))
    }

    /// Where arm and platter are, to choose the next command by; the last one ended at `now_ns`.
    pub(super) fn positioning(&self, now_ns: u64) -> Positioning<'_> {
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
    }

    /// The place of a sector.
    pub(crate) fn locate(&self, sector: u64) -> Spot {
        self.geometry.locate(sector)
    }

    /// Goes back over what was written while no command came, nearest first, and answers when the drive is ready for the
    /// one that arrives at `now_ns`: at once, unless the arm is on its way to a written sector.
    fn verify_until(&mut self, now_ns: u64) -> u64 {
        let Some(mut verify) = self.verify.take() else { return now_ns };
        let mut clock_ns = self.free_ns.saturating_add(verify.delay_ns);
        let mut ready_ns = now_ns;
        while clock_ns < now_ns {
            let Some((index, access)) = verify.nearest(&self.geometry, &self.arm) else { break };
            self.ahead = None;
            let spot = self.geometry.locate(access.sector);
            let arrived_ns = clock_ns + self.mechanics.move_ns(&self.arm, &spot, Op::Read);
            let begun_ns = arrived_ns + self.platter.wait_ns(arrived_ns, spot.angle);
            clock_ns = begun_ns + self.platter.turn_ns(spot.span(access.sectors));
            self.arm = spot;
            if clock_ns > now_ns {
                ready_ns = now_ns.max(arrived_ns);
                break;
            }
            verify.remove(index);
        }
        self.verify = Some(verify);
        ready_ns
    }

    fn read(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.sector + u64::from(access.sectors);
        let Some(index) = self.segments.find(access.sector) else {
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
        let overhead_ns = self.overheads.hit(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let overhead_ns = overhead_ns + u64::from(access.sectors) * self.interface_sector_ns;
        let finish_ns = now_ns + overhead_ns;
        if let Some(ahead) = self.ahead.filter(|ahead| ahead.segment == index) {
            let stopped = ahead.next >= ahead.limit;
            let limit = self.read_ahead_limit(access, None).max(ahead.limit);
            // A read-ahead that had stopped, its segment full, wakes up at this command, not in the past.
            let at_ns = if stopped { now_ns.max(ahead.at_ns) } else { ahead.at_ns };
            self.ahead = Some(Ahead { limit, at_ns, ..ahead });
        }
        let phases = Phases { overhead_ns, ..Phases::default() };
        let cylinder = self.geometry.locate(access.sector).cylinder;
        Service { finish_ns, phases, source: Source::Buffer, cylinder }
    }

    /// The head is already reading towards the rest of it: no seek, and the command's overhead is hidden by the media.
    fn read_stream(&mut self, now_ns: u64, access: &Access, index: usize, ahead: Ahead) -> Service {
        let end = access.sector + u64::from(access.sectors);
        let overhead_ns = self.overheads.hit(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let from_media = end - ahead.next.max(access.sector);
        let source = if access.sector < ahead.next { Source::Both } else { Source::Media };
        let mut ahead = Ahead { limit: end, ..ahead };
        self.advance(&mut ahead, u64::MAX);
        self.segments.fill(index, end);
        let media_ns = ahead.at_ns.max(now_ns + overhead_ns);
        let interface_ns = u64::from(access.sectors) * self.interface_sector_ns;
        let finish_ns = (media_ns + self.interface_sector_ns).max(now_ns + overhead_ns + interface_ns);
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
        let end = access.sector + u64::from(access.sectors);
        let first = held.map_or(access.sector, |(_, held)| held.max(access.sector));
        let source = if first > access.sector { Source::Both } else { Source::Media };
        self.ahead = None;
        let ready_ns = now_ns + self.overheads.miss(Op::Read, self.last).saturating_sub(self.prepared_ns);
        let buffered_ns = (first - access.sector) * self.interface_sector_ns;
        let mut progress = Progress { now_ns: ready_ns, host_ns: ready_ns + buffered_ns, ..Progress::default() };
        self.pass(&mut progress, first, end, Op::Read);
        let segment = match held {
            Some((index, _)) => Some(index),
            None => self.segments.replace(access.sector),
        };
        if let Some(segment) = segment {
            self.segments.fill(segment, end);
            let limit = self.read_ahead_limit(access, Some(progress.track_end));
            self.ahead = Some(Ahead { segment, next: end, limit, at_ns: progress.now_ns });
        }
        let finish_ns = progress.host_ns.max(progress.now_ns);
        self.service(now_ns, finish_ns, &progress, source, access)
    }

    fn write(&mut self, now_ns: u64, access: &Access) -> Service {
        let end = access.sector + u64::from(access.sectors);
        self.ahead = None;
        self.segments.invalidate(access.sector, end);
        let overhead_ns = self.overheads.miss(Op::Write, self.last);
        let ready_ns = now_ns + overhead_ns.saturating_sub(self.prepared_ns);
        let arrived_ns =
            |sectors: u64| now_ns + (overhead_ns + sectors * self.interface_sector_ns).saturating_sub(self.prepared_ns);
        let all_ns = arrived_ns(u64::from(access.sectors));
        // The arm moves while the data arrive; the first sector is written once it is there.
        let host_ns = arrived_ns(1);
        let mut progress = Progress { now_ns: ready_ns, host_ns, ..Progress::default() };
        self.pass(&mut progress, access.sector, end, Op::Write);
        // A host slower than the media would starve the head: its data set the end then.
        let finish_ns = progress.now_ns.max(all_ns);
        self.service(now_ns, finish_ns, &progress, Source::Media, access)
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
    fn pass(&mut self, progress: &mut Progress, from: u64, end: u64, op: Op) {
        let mut next = from;
        while next < end {
            let spot = self.geometry.locate(next);
            let sectors = u64::from(spot.room).min(end - next) as u32;
            let move_ns = self.mechanics.move_ns(&self.arm, &spot, op);
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
        let end = access.sector + u64::from(access.sectors);
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
