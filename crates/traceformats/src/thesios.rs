//! Reads Google's Thesios traces (2024): tables of the requests of one server with a hard disk.
//!
//! The columns are found by their titles, whose line stands again where files were joined. Offsets
//! and sizes are bytes of files, times and durations seconds, times count from 1970.
//!
//! The reader yields the requests of the *disk*: reads that missed the caches, with the time that
//! they waited, and all writes. The trace does not tell when a write reaches the disk; it has the
//! server's latency. The process of a request is its application with its service class.

use crate::event::{DeviceId, Rwbs};
use crate::places::{ObjectPlaces, object_of};
use crate::text::{
    LineError, LineFormat, LineOutput, NamedProcesses, Request, RequestSorter, SharedNames, TimeUnit, TitledColumns,
    TitledRow, decimal_ns, number, shown,
};

/// Titles of the columns that are read. The first [`REQUIRED`] must be there.
const TITLES: [&str; 11] = [
    "filename",
    "file_offset",
    "op_type",
    "service_class",
    "request_io_size_bytes",
    "start_time",
    "application",
    "disk_io_size_bytes",
    "disk_time",
    "simulated_disk_start_time",
    "simulated_latency",
];
const REQUIRED: usize = 6;
const SECOND_PS: u64 = TimeUnit::Second.ps();

/// Titles by which the format is recognised.
pub const SIGNATURE: [&str; 3] = ["filename", "file_offset", "service_class"];

/// Parser of the lines.
#[derive(Debug)]
pub struct Thesios {
    columns: TitledColumns<11>,
    places: ObjectPlaces,
    applications: NamedProcesses,
    requests: RequestSorter,
}

impl Thesios {
    /// Creates a parser for a table with this beginning. Also returns a remark about its contents.
    ///
    /// # Errors
    /// Fails if a title is missing.
    pub fn new(head: &[u8], places: &ObjectPlaces, names: &SharedNames) -> Result<(Thesios, Option<String>), String> {
        let columns = TitledColumns::find(head, TITLES, REQUIRED)?;
        let remark = format!(
            "the requests are those of the disk: reads that missed the caches, with their sizes on the disk, and writes, \
             whose latencies are the server's. {}",
            ObjectPlaces::REMARK
        );
        let thesios = Thesios {
            columns,
            places: places.clone(),
            applications: NamedProcesses::new(names),
            requests: RequestSorter::default(),
        };
        Ok((thesios, Some(remark)))
    }

    /// Returns the request of a row on the disk; None if the disk is not used.
    fn request(&mut self, row: &TitledRow<'_, 11>, out: &mut LineOutput<'_>) -> Result<Option<Request>, LineError> {
        let optional = |index: usize, what: &str| row.get(index).map_or(Ok(0), |field| number(field, what));
        let duration =
            |index: usize, what: &str| row.get(index).map_or(Ok(0), |field| decimal_ns(field, SECOND_PS, what));
        let file = object_of(row.want(0)?);
        let offset = number(row.want(1)?, "the offset")?;
        let time_ns = decimal_ns(row.want(5)?, SECOND_PS, "the time")?;
        let latency_ns = duration(10, "the latency")?;
        let (op, bytes, issue_ns, response_ns) = match row.want(2)? {
            b"READ" => {
                let bytes: u64 = optional(7, "the size on the disk")?;
                let begun_ns = duration(9, "the start on the disk")?;
                let disk_ns = duration(8, "the time of the disk")?;
                let waited_ns = begun_ns.saturating_sub(time_ns);
                let has_times = begun_ns >= time_ns && disk_ns > 0;
                let response_ns = has_times.then(|| waited_ns.saturating_add(disk_ns));
                (Rwbs::READ, bytes, has_times.then_some(waited_ns), response_ns)
            }
            b"WRITE" => {
                let bytes = number(row.want(4)?, "the size")?;
                (Rwbs::WRITE, bytes, None, (latency_ns > 0).then_some(latency_ns))
            }
            other => return Err(format!("{} stands where READ or WRITE should be", shown(other)).into()),
        };
        if bytes == 0 {
            let kind = "requests that the disk does not see are left out: reads from caches, and requests of 0 bytes";
            out.notices.count(kind, out.position, || format!("time {} ns", time_ns));
            return Ok(None);
        }
        let class = match row.want(3)? {
            b"LATENCY_SENSITIVE" => &b"latency"[..],
            b"THROUGHPUT_ORIENTED" => b"throughput",
            b"OTHER" => b"other",
            other => other,
        };
        let name = [row.get(6).unwrap_or_default(), b":", class].concat();
        let pid = self.applications.pid(&name, time_ns, out);
        let device = DeviceId(0);
        let offset = self.places.address(device, file, offset, bytes, out);
        Ok(Some(Request { time_ns, issue_ns, response_ns, device, op, offset, bytes, pid, ..Request::default() }))
    }
}

impl LineFormat for Thesios {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || self.columns.is_titles(line) {
            return Ok(false);
        }
        let row = self.columns.row(line);
        if let Some(request) = self.request(&row, out)? {
            self.requests.take(&request, out)?;
        }
        Ok(true)
    }

    fn end(&mut self, out: &mut LineOutput<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;
    use crate::text::test_support::{events, failure, read};

    const HEAD: &str = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,simulated_latency\n";

    fn thesios(text: &str) -> Thesios {
        Thesios::new(text.as_bytes(), &ObjectPlaces::default(), &SharedNames::default()).unwrap().0
    }

    #[test]
    fn a_read_miss_waits_and_is_served_and_a_hit_does_not_reach_the_disk() {
        let text = format!(
            "{HEAD}c0,4096,bigtable,1,WARM,REPLICATED,READ,LATENCY_SENSITIVE,0,0,65536,69632,65536,100.25,0.01,100.252,0.013\n\
             c0,0,bigtable,1,WARM,REPLICATED,READ,OTHER,0,1,4096,0,4096,100.3,0,0,0.0001\n\
             {HEAD}c1,0,spanner,1,WARM,REPLICATED,WRITE,THROUGHPUT_ORIENTED,0,-1,512,0,512,100.4,0,0,0.0009\n"
        );
        let batch = read(thesios(&text), &text);
        let moments: Vec<_> = batch
            .events()
            .iter()
            .filter(|event| !event.action.is_note())
            .map(|event| (event.time_ns / 1000 - 100_000_000, event.action, event.sector, event.bytes, event.pid))
            .collect();
        assert_eq!(
            moments,
            [
                (250_000, Action::Queue, 8, 69_632, 1),
                (252_000, Action::Issue, 8, 69_632, 1),
                (262_000, Action::Complete, 8, 69_632, 1),
                (400_000, Action::Queue, 2_048, 512, 2),
                (400_900, Action::Complete, 2_048, 512, 2),
            ]
        );
        let names = batch.events().iter().filter(|event| event.action == Action::Process);
        let names: Vec<&[u8]> = names.map(|event| batch.payload(event)).collect();
        assert_eq!(names, [&b"bigtable:latency"[..], b"spanner:throughput"]);
        let (count, notices) = events(thesios(&text), &text);
        assert_eq!(count, Ok(5));
        assert!(notices[0].contains("that the disk does not see"), "{notices:?}");
    }

    #[test]
    fn columns_are_found_by_title_in_any_order() {
        let text =
            "op_type,start_time,service_class,file_offset,filename,request_io_size_bytes\nWRITE,7.5,OTHER,0,a,512\n";
        assert_eq!(read(thesios(text), text).events().last().unwrap().time_ns, 7_500_000_000);
        let missing = Thesios::new(b"filename,file_offset\n", &ObjectPlaces::default(), &SharedNames::default());
        assert!(missing.unwrap_err().contains("have no column op_type"));
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        let wrong = format!("{HEAD}c0,0,b,1,WARM,REPLICATED,APPEND,OTHER,0,0,1,1,1,1,0,0,0\n");
        assert_eq!(failure(thesios(&wrong), &wrong), "a:2: \"APPEND\" stands where READ or WRITE should be");
    }
}
