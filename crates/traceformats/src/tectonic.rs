//! Reads the block traces of Meta's file system Tectonic: the table of December 2023
//! (`storage/202312`), and the older collections 201910 to 2023 (Baleen).
//!
//! | collection | columns |
//! |---|---|
//! | 202312 | by title: `op_time,block_id,...,io_size,io_offset,user_name,...,op_name,op_count,host_name,rs_shard_id` |
//! | 201910 | `block_id io_offset io_size op_time op_name pipeline user_namespace user_name` |
//! | 202110 | `block_id io_offset io_size op_time op_name user_namespace user_name host_name op_count` |
//! | 2023 | `block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name` |
//!
//! Times are seconds since 1970, offsets and sizes bytes of a block. A line stands for `op_count`
//! equal requests of one second, which are spread over it. The host is the device, the user the
//! process.

use crate::event::{DeviceId, Rwbs};
use crate::places::{ObjectPlaces, object_of};
use crate::text::{
    Fields, LineError, LineFormat, LineOutput, NamedDevices, NamedProcesses, Request, RequestSorter, SharedNames,
    TimeUnit, TitledColumns, decimal_ns, number, shown,
};

/// Titles of the columns of 202312. The first [`REQUIRED`] must be there.
const TITLES: [&str; 9] =
    ["op_time", "block_id", "io_size", "io_offset", "op_name", "user_name", "op_count", "host_name", "rs_shard_id"];
const REQUIRED: usize = 5;
const SECOND_PS: u64 = TimeUnit::Second.ps();
/// Length of the interval over which equal requests are spread, in ns.
const SPREAD_NS: u64 = 1_000_000_000;
/// Maximum number of equal requests in a second.
const COUNT_MAX: u64 = 1_000_000;

/// Titles by which the table of 202312 is recognised.
pub const SIGNATURE: [&str; 3] = ["op_time", "block_id", "op_name"];

/// Names that the inputs of a trace share.
#[derive(Clone, Debug, Default)]
pub struct SharedState {
    /// Numbers of the hosts.
    pub hosts: SharedNames,
    /// Numbers of the users.
    pub users: SharedNames,
    /// Places of the blocks.
    pub places: ObjectPlaces,
}

/// Parser of the lines of all collections.
#[derive(Debug)]
pub struct Tectonic {
    /// The columns of 202312; None for the older collections.
    columns: Option<TitledColumns<9>>,
    hosts: NamedDevices,
    users: NamedProcesses,
    places: ObjectPlaces,
    requests: RequestSorter,
}

/// The fields of a line; those that a collection lacks are empty.
#[derive(Clone, Copy, Debug, Default)]
struct Row<'a> {
    time: &'a [u8],
    block: &'a [u8],
    size: &'a [u8],
    offset: &'a [u8],
    op: &'a [u8],
    user: &'a [u8],
    count: &'a [u8],
    host: &'a [u8],
    shard: &'a [u8],
}

impl Tectonic {
    /// Creates a parser for a table of December 2023 with this beginning, with a remark.
    ///
    /// # Errors
    /// Fails if a title is missing.
    pub fn new(head: &[u8], shared: &SharedState) -> Result<(Tectonic, Option<String>), String> {
        let columns = TitledColumns::find(head, TITLES, REQUIRED)?;
        Ok(Tectonic::with_columns(Some(columns), shared))
    }

    /// Creates a parser for the older collections, with a remark.
    pub fn baleen(shared: &SharedState) -> (Tectonic, Option<String>) {
        Tectonic::with_columns(None, shared)
    }

    fn with_columns(columns: Option<TitledColumns<9>>, shared: &SharedState) -> (Tectonic, Option<String>) {
        let remark = format!(
            "requests of a line with a count are spread over their second; times are whole seconds in most \
             collections. {}",
            ObjectPlaces::REMARK
        );
        let tectonic = Tectonic {
            columns,
            hosts: NamedDevices::new(&shared.hosts),
            users: NamedProcesses::new(&shared.users),
            places: shared.places.clone(),
            requests: RequestSorter::default(),
        };
        (tectonic, Some(remark))
    }

    /// Takes the requests of a line.
    fn take(&mut self, row: &Row<'_>, out: &mut LineOutput<'_>) -> Result<(), LineError> {
        let time_ns = decimal_ns(row.time, SECOND_PS, "the time")?;
        let offset = number(row.offset, "the offset")?;
        let bytes: u64 = number(row.size, "the size")?;
        let count = if row.count.is_empty() { 1 } else { number(row.count, "the number of requests")? };
        if count > COUNT_MAX {
            return Err(format!("{count} requests in a second: {COUNT_MAX} is the most").into());
        }
        let Some(op) = operation(row.op)? else {
            out.notices.count("operations of unknown kind are left out", out.position, || shown(row.op));
            return Ok(());
        };
        if bytes == 0 {
            out.notices.count("requests of 0 bytes are left out", out.position, || shown(row.block));
            return Ok(());
        }
        let device = if row.host.is_empty() { DeviceId(0) } else { self.hosts.device(row.host, out)? };
        let pid = if row.user.is_empty() { 0 } else { self.users.pid(&[b"user ", row.user].concat(), time_ns, out) };
        let block = object_of(&[row.block, b"_", row.shard].concat());
        let offset = self.places.address(device, block, offset, bytes, out);
        for index in 0..count {
            let time_ns = time_ns.saturating_add(SPREAD_NS * index / count);
            let request = Request { time_ns, device, op, offset, bytes, pid, ..Request::default() };
            self.requests.take(&request, out)?;
        }
        Ok(())
    }
}

/// Returns the fields of a line of the older collections, whose number of columns tells the
/// collection.
fn baleen_row(line: &[u8]) -> Result<Row<'_>, String> {
    let fields: Vec<&[u8]> = Fields::blanks(line).take(11).collect();
    let row = |block, offset, size, time, op| Row { block, offset, size, time, op, ..Row::default() };
    match *fields.as_slice() {
        [block, offset, size, time, op, _, _, user] => Ok(Row { user, ..row(block, offset, size, time, op) }),
        [block, offset, size, time, op, _, user, host, count] => {
            Ok(Row { user, host, count, ..row(block, offset, size, time, op) })
        }
        [block, offset, size, time, op, _, user, shard, count, host] => {
            Ok(Row { user, shard, count, host, ..row(block, offset, size, time, op) })
        }
        _ => Err(format!(
            "{} has {} columns: 8 (201910), 9 (202110) or 10 (2023) would be right",
            shown(line),
            fields.len()
        )),
    }
}

/// Returns true for a line of the older collections: 8 to 10 numbers, of which the fourth is a time
/// between 2017 and 2027 and the fifth an operation.
pub fn is_baleen(line: &[u8]) -> bool {
    let Ok(row) = baleen_row(line) else { return false };
    let is_number = |field: &[u8]| field.is_empty() || number::<u64>(field, "").is_ok();
    let time = decimal_ns(row.time, SECOND_PS, "").map_or(0, |ns| ns / SPREAD_NS);
    [row.block, row.offset, row.size, row.user, row.count, row.host, row.shard].into_iter().all(is_number)
        && (1_500_000_000..1_800_000_000).contains(&time)
        && matches!(row.op, b"1" | b"2" | b"3" | b"4" | b"5" | b"6" | b"100")
}

/// Parses an operation, which is a name or its number; None for an unknown one, 100.
fn operation(field: &[u8]) -> Result<Option<Rwbs>, String> {
    match field {
        b"1" | b"2" | b"5" => Ok(Some(Rwbs::READ)),
        b"3" | b"4" | b"6" => Ok(Some(Rwbs::WRITE)),
        b"100" => Ok(None),
        name if name.starts_with(b"getChunkData") => Ok(Some(Rwbs::READ)),
        name if name.starts_with(b"putChunk") => Ok(Some(Rwbs::WRITE)),
        other => Err(format!(
            "the operation {} is not known: names that begin with getChunkData or putChunk, 1 to 6 and 100 are",
            shown(other)
        )),
    }
}

impl LineFormat for Tectonic {
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(false);
        }
        let row = match &self.columns {
            Some(columns) if columns.is_titles(line) => return Ok(false),
            Some(columns) => {
                let row = columns.row(line);
                let optional = |index| row.get(index).unwrap_or_default();
                Row {
                    time: row.want(0)?,
                    block: row.want(1)?,
                    size: row.want(2)?,
                    offset: row.want(3)?,
                    op: row.want(4)?,
                    user: optional(5),
                    count: optional(6),
                    host: optional(7),
                    shard: optional(8),
                }
            }
            None => baleen_row(line)?,
        };
        self.take(&row, out)?;
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

    const HEAD: &str = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n";

    fn tectonic(text: &str) -> Tectonic {
        Tectonic::new(text.as_bytes(), &SharedState::default()).unwrap().0
    }

    #[test]
    fn equal_requests_are_spread_over_their_second_and_shards_of_a_block_are_apart() {
        let text = format!(
            "{HEAD}1702511901,00aa-11bb,40,131072,1048576,11,22,getChunkData.Permanent,1,333,5\n\
             1702511901,00aa-11bb,40,4096,0,12,22,putChunk.NotInitialized,2,333,6\n"
        );
        let batch = read(tectonic(&text), &text);
        let seen: Vec<_> = batch
            .events()
            .iter()
            .filter(|event| event.action == Action::Queue)
            .map(|event| {
                (event.time_ns / 1_000_000 - 1_702_511_901_000, event.sector, event.bytes, event.op, event.pid)
            })
            .collect();
        let expected =
            [(0, 0, 131_072, Rwbs::READ, 1), (0, 2048, 4096, Rwbs::WRITE, 2), (500, 2048, 4096, Rwbs::WRITE, 2)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_number_of_columns_decides_the_collection() {
        let text = "# block_id io_offset\n310 262144 4325376 1572074461.57806 1 24 3 5\n\
                    310 0 0 1572074461.6 4 24 3 5\n\
                    311 0 4096 1633000000 4 3 5 77 2\n\
                    312 0 4096 1679000000 100 3 5 1 1 77\n312 0 4096 1679000001 3 3 5 1 1 77\n";
        let (count, notices) = events(Tectonic::baleen(&SharedState::default()).0, text);
        assert_eq!(count, Ok(4));
        assert!(notices.iter().any(|notice| notice.starts_with("a:3: requests of 0 bytes")), "{notices:?}");
        assert!(notices.iter().any(|notice| notice.starts_with("a:5: operations of unknown kind")), "{notices:?}");
        assert!(text.lines().skip(1).all(|line| is_baleen(line.as_bytes())));
        for other in ["12 34 5", "0 4892 kjournald 904265560 8 W 6 0 531e", "1572074461 1 2 3 4 5 6 7"] {
            assert!(!is_baleen(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        for (wrong, message) in [
            ("1702511901,a,40,1,0,1,2,deleteChunk,1,3,5", "a:2: the operation \"deleteChunk\" is not known"),
            ("1702511901,a,40,1,0,1,2,putChunk,2000000,3,5", "a:2: 2000000 requests in a second: 1000000 is the most"),
            ("1702511901,a,40,1,0,1,2", "a:2: the line ends where op_name should be"),
        ] {
            let text = format!("{HEAD}{wrong}\n");
            let failed = failure(tectonic(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
