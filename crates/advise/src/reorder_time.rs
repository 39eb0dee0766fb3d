//! The time that a drive model takes for the requests of a trace, in the recorded order and in a
//! new one.

use hoistway_drive::{Access, AccessError, Command, Drive, Op, Profile};
use hoistway_trace::reorder::ReorderObserver;
use hoistway_trace::{Event, Rwbs};

/// Two drives of one model that serve the requests of a trace in both orders, one request at a
/// time.
pub struct ReorderTime {
    before: SerialDrive,
    after: SerialDrive,
}

impl ReorderTime {
    /// Creates the two drives.
    pub fn new(profile: &Profile) -> ReorderTime {
        ReorderTime { before: SerialDrive::new(profile), after: SerialDrive::new(profile) }
    }

    /// Total service times in ns: in the recorded order, and in the new one.
    ///
    /// # Errors
    /// The first request that the drive refused.
    pub fn total_ns(self) -> Result<[u64; 2], AccessError> {
        Ok([self.before.total_ns()?, self.after.total_ns()?])
    }
}

impl ReorderObserver for ReorderTime {
    fn before(&mut self, request: &Event) {
        self.before.serve(request);
    }

    fn after(&mut self, request: &Event) {
        self.after.serve(request);
    }
}

/// A drive model that serves requests one at a time.
struct SerialDrive {
    drive: Drive,
    now_ns: u64,
    /// Error of the first refused request.
    refused: Option<AccessError>,
}

impl SerialDrive {
    fn new(profile: &Profile) -> SerialDrive {
        SerialDrive { drive: Drive::new(profile), now_ns: 0, refused: None }
    }

    fn serve(&mut self, request: &Event) {
        if self.refused.is_some() {
            return;
        }
        match self.drive.serve(self.now_ns, command(request)) {
            Ok(completion) => self.now_ns = completion.service.finish_ns,
            Err(error) => self.refused = Some(error),
        }
    }

    fn total_ns(self) -> Result<u64, AccessError> {
        self.refused.map_or(Ok(self.now_ns), Err)
    }
}

/// Converts a request of a trace to a command of a drive.
fn command(request: &Event) -> Command {
    let (sector, sectors) = (request.sector, request.bytes.div_ceil(512));
    if request.bytes == 0 {
        return Command::Flush;
    }
    if request.op.has(Rwbs::DISCARD) {
        return Command::Discard { sector, sectors };
    }
    let op = if request.op.has(Rwbs::WRITE) { Op::Write } else { Op::Read };
    Command::Transfer { access: Access { op, sector, sectors }, fua: request.op.has(Rwbs::FUA) }
}

#[cfg(test)]
mod tests {
    use hoistway_trace::Action;

    use super::*;

    #[test]
    fn sorted_requests_take_less_time() {
        let profile = Profile::builtin("sata-7200-2006").expect("a built-in drive");
        let mut time = ReorderTime::new(&profile);
        let request = |sector| Event { sector, bytes: 4096, op: Rwbs::READ, ..Event::new(0, Action::Queue) };
        let recorded = [8_000_000, 0, 9_000_000, 800_000, 8_500_000, 1_600_000];
        let mut sorted = recorded;
        sorted.sort_unstable();
        recorded.iter().for_each(|sector| time.before(&request(*sector)));
        sorted.iter().for_each(|sector| time.after(&request(*sector)));
        let [before, after] = time.total_ns().expect("all sectors exist");
        assert!(after < before, "{after} ns sorted, {before} ns as recorded");
    }
}
