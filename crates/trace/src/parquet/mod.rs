//! Traces as Parquet files: a row for each event, in one file or in a set of files that are
//! partitioned by time.
//!
//! | column | type | null | |
//! |---|---|---|---|
//! | `time_ns` | u64 | no | ns of the recorder's clock |
//! | `action` | text | no | blkparse's letters, `N` for the name of a process, `T` for the wall-clock time |
//! | `device` | text | no | as in `8:0` |
//! | `cpu`, `pid`, `sequence` | u32 | no | 0 if unknown |
//! | `rwbs` | text | no | blkparse's letters, followed by `P` for a passed-through command |
//! | `sector` | u64 | no | first sector of 512 bytes |
//! | `bytes` | u32 | no | length |
//! | `error` | u16 | no | error number of a completion |
//! | `cgroup` | u64 | no | control group id |
//! | `payload` | bytes | yes | text of messages and names, big-endian numbers of other events |
//! | `process` | text | yes | derived: last name of the process of `request_pid`, otherwise of `pid` |
//! | `outstanding`, `in_device` | u32 | no | derived: requests after the event |
//! | `request_pid` | u32 | yes | derived, in the last completion of a request: process of its first bio |
//! | `bios` | u32 | yes | derived, in the same rows: number of bios in the request |
//! | `q2c_ns`, `d2c_ns` | u64 | yes | derived, in the same rows: durations of the first bio |
//!
//! The derived columns are for programs that compute figures without rebuilding requests. The
//! reader ignores them, and needs only `time_ns`, `action`, `rwbs`, `sector` and `bytes`.
//!
//! The metadata of each file name the set, the number of the file in the set, and whether it is the
//! last, so that the events of a set are read in the order in which they were written, and missing
//! files are noticed.

mod reader;
mod rows;
mod set;
mod writer;

use hoistway_columnar::{Column, Encoding, Kind};

pub(crate) use reader::Contents;
pub(crate) use set::open_set;
pub use writer::{Partition, Writer};
#[cfg(test)]
mod tests;

/// Extension of the files of a set.
pub(crate) const EXTENSION: &str = "parquet";
/// Beginning of the name of the program in the metadata of files that this library wrote.
const PROGRAM: &str = "hoistway ";
/// Key of the metadata with the identifier of the set.
const SET: &str = "hoistway.set";
/// Key of the metadata with the number of the file in its set, from 0 on.
const PART: &str = "hoistway.part";
/// Key of the metadata that the last file of a set has.
const LAST: &str = "hoistway.last";

/// How the reader uses a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A file without it is refused.
    Needed,
    /// Its values are 0 or empty if the file lacks it.
    Optional,
    /// It is ignored.
    Derived,
}

/// A column of the schema.
struct Declared {
    name: &'static str,
    kind: Kind,
    nullable: bool,
    encoding: Encoding,
    usage: Use,
}

const fn column(name: &'static str, kind: Kind, encoding: Encoding, usage: Use) -> Declared {
    Declared { name, kind, nullable: false, encoding, usage }
}

const fn nullable(name: &'static str, kind: Kind, encoding: Encoding, usage: Use) -> Declared {
    Declared { name, kind, nullable: true, encoding, usage }
}

/// The columns in the order in which they are written.
const COLUMNS: [Declared; 19] = [
    column("time_ns", Kind::U64, Encoding::Delta, Use::Needed),
    column("action", Kind::Text, Encoding::Dictionary, Use::Needed),
    column("device", Kind::Text, Encoding::Dictionary, Use::Optional),
    column("cpu", Kind::U32, Encoding::Dictionary, Use::Optional),
    column("pid", Kind::U32, Encoding::Dictionary, Use::Optional),
    column("sequence", Kind::U32, Encoding::Delta, Use::Optional),
    column("rwbs", Kind::Text, Encoding::Dictionary, Use::Needed),
    column("sector", Kind::U64, Encoding::Delta, Use::Needed),
    column("bytes", Kind::U32, Encoding::Dictionary, Use::Needed),
    column("error", Kind::U16, Encoding::Dictionary, Use::Optional),
    column("cgroup", Kind::U64, Encoding::Dictionary, Use::Optional),
    nullable("payload", Kind::Bytes, Encoding::Dictionary, Use::Optional),
    nullable("process", Kind::Text, Encoding::Dictionary, Use::Derived),
    column("outstanding", Kind::U32, Encoding::Dictionary, Use::Derived),
    column("in_device", Kind::U32, Encoding::Dictionary, Use::Derived),
    nullable("request_pid", Kind::U32, Encoding::Dictionary, Use::Derived),
    nullable("bios", Kind::U32, Encoding::Dictionary, Use::Derived),
    nullable("q2c_ns", Kind::U64, Encoding::Delta, Use::Derived),
    nullable("d2c_ns", Kind::U64, Encoding::Delta, Use::Derived),
];

/// Returns the columns of a file.
fn schema() -> Vec<Column> {
    let column = |column: &Declared| Column {
        name: column.name.to_owned(),
        kind: column.kind,
        nullable: column.nullable,
        encoding: column.encoding,
    };
    COLUMNS.iter().map(column).collect()
}
