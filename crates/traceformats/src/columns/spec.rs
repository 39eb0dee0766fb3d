//! The description of the columns.

use std::fmt;
use std::str::FromStr;

use crate::text::{Separator, TimeUnit};

/// An example of a description, for messages.
const EXAMPLE: &str = "time=1:s,op=2,offset=3:sectors,size=4:bytes";

/// Description of the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The columns in the order in which they were described.
    pub(super) columns: Vec<Column>,
    /// Separator of the fields; None detects it.
    pub(super) separator: Option<Separator>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub role: Role,
    pub place: Place,
}

/// Meaning of a column, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Time of the submission.
    Time(Clock),
    /// Time of the completion.
    Completed(Clock),
    Op(OpCode),
    Offset(SizeUnit),
    Size(SizeUnit),
    Latency(TimeUnit),
    Device,
    Pid,
    Process,
}

/// Where a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The number of the column, counted from 1.
    Number(usize),
    /// The title of the column in the first line.
    Title(String),
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// A number in a unit.
    Unit(TimeUnit),
    /// A date and a time of the day.
    Date,
}

/// How an operation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpCode {
    /// A word, or letters of blkparse.
    Words,
    /// A SCSI command, hexadecimal.
    Hex,
    /// A SCSI command, decimal.
    Scsi,
    /// 0 is a read, 1 a write.
    ReadIs0,
    /// 1 is a read, 0 a write.
    ReadIs1,
}

/// Unit of offsets and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeUnit {
    /// Sectors of the size that the input options name.
    Sectors,
    /// A number of bytes.
    Bytes(u64),
}

impl Role {
    /// Returns the role with a name and a unit.
    fn of(name: &str, unit: Option<&str>) -> Result<Role, String> {
        let want = |units: &str| {
            unit.ok_or_else(|| {
                let first = units.split(',').next().unwrap_or_default();
                format!("the unit of {name} is missing: {name}=N:{first} names it, one of {units}")
            })
        };
        let time_unit = |units: &str| {
            let unit = want(units)?;
            TimeUnit::from_name(unit).ok_or_else(|| format!("the unit `{unit}` of {name} is not one of {units}"))
        };
        let clock = || match unit {
            Some("date") => Ok(Clock::Date),
            _ => time_unit("s, ms, us, 100ns, ns, ps, date").map(Clock::Unit),
        };
        let size = || {
            let units = "bytes, sectors, KiB, or a number of bytes";
            match want(units)? {
                "bytes" => Ok(SizeUnit::Bytes(1)),
                "sectors" => Ok(SizeUnit::Sectors),
                "KiB" | "kib" => Ok(SizeUnit::Bytes(1024)),
                number => match number.parse() {
                    Ok(bytes @ 1..=1_073_741_824) => Ok(SizeUnit::Bytes(bytes)),
                    _ => Err(format!("the unit `{number}` of {name} is not one of {units} up to 1073741824")),
                },
            }
        };
        let none = |role: Role| match unit {
            None => Ok(role),
            Some(unit) => Err(format!("{name} has no unit, but `{unit}` is given")),
        };
        match name {
            "time" => clock().map(Role::Time),
            "completed" => clock().map(Role::Completed),
            "offset" => size().map(Role::Offset),
            "size" => size().map(Role::Size),
            "latency" => time_unit("s, ms, us, 100ns, ns, ps").map(Role::Latency),
            "op" => match unit {
                None | Some("words") => Ok(Role::Op(OpCode::Words)),
                Some("hex") => Ok(Role::Op(OpCode::Hex)),
                Some("scsi") => Ok(Role::Op(OpCode::Scsi)),
                Some("01") => Ok(Role::Op(OpCode::ReadIs0)),
                Some("10") => Ok(Role::Op(OpCode::ReadIs1)),
                Some(other) => Err(format!(
                    "the form `{other}` of op is not known: words, hex (SCSI commands), scsi (the same, decimal), 01 (0 \
                     is a read, 1 a write) and 10 (1 is a read) are"
                )),
            },
            "device" => none(Role::Device),
            "pid" => none(Role::Pid),
            "process" => none(Role::Process),
            _ => Err(format!(
                "the column `{name}` is not known: time, completed, op, offset, size, latency, device, pid, process and \
                 separator are"
            )),
        }
    }

    /// Name of the role in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Time(_) => "time",
            Role::Completed(_) => "completed",
            Role::Op(_) => "op",
            Role::Offset(_) => "offset",
            Role::Size(_) => "size",
            Role::Latency(_) => "latency",
            Role::Device => "device",
            Role::Pid => "pid",
            Role::Process => "process",
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text.parse() {
            Ok(0) => Err("columns are counted from 1".to_owned()),
            Ok(number @ 1..=1000) => Ok(Place::Number(number)),
            Ok(number) => Err(format!("column {number} is beyond 1000")),
            Err(_) if text.is_empty() => Err("the number or the title of the column is missing".to_owned()),
            Err(_) => Ok(Place::Title(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Number(number) => write!(f, "column {number}"),
            Place::Title(title) => write!(f, "the column `{title}`"),
        }
    }
}

fn separator_of(name: &str) -> Result<Separator, String> {
    match name {
        "comma" => Ok(Separator::Byte(b',')),
        "semicolon" => Ok(Separator::Byte(b';')),
        "tab" => Ok(Separator::Byte(b'\t')),
        "pipe" => Ok(Separator::Byte(b'|')),
        "blanks" => Ok(Separator::Blanks),
        _ => Err(format!("the separator `{name}` is not known: comma, semicolon, tab, pipe and blanks are")),
    }
}

impl FromStr for ColumnSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ColumnSpec, String> {
        let mut spec = ColumnSpec { columns: Vec::new(), separator: None };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is no description of a column: {EXAMPLE} would be right"))?;
            if name == "separator" {
                spec.separator = Some(separator_of(value)?);
                continue;
            }
            let (place, unit) = match value.rsplit_once(':') {
                Some((place, unit)) => (place, Some(unit)),
                None => (value, None),
            };
            let role = Role::of(name, unit)?;
            let place = place.parse().map_err(|what| format!("`{part}`: {what}"))?;
            if spec.find(role.name()).is_some() {
                return Err(format!("{} is described twice", role.name()));
            }
            spec.columns.push(Column { role, place });
        }
        spec.check()?;
        Ok(spec)
    }
}

impl ColumnSpec {
    /// Returns the column of a role.
    pub(super) fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.role.name() == name)
    }

    /// Checks that the columns describe requests.
    fn check(&self) -> Result<(), String> {
        let has = |name: &str| self.find(name).is_some();
        match (has("time"), has("completed")) {
            (false, false) => Err(format!("the column of the time is missing, as in {EXAMPLE}")),
            (true, true) => {
                Err("time (of the submission) and completed exclude one another: latency gives the other".to_owned())
            }
            (false, true) if !has("latency") => {
                Err("completed needs latency to give the time of the submission".to_owned())
            }
            _ if !has("size") => Err(format!("the column of the size is missing, as in {EXAMPLE}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_columns_and_units() {
        let spec: ColumnSpec = "time=2:s,op=3:hex,size=length:bytes, offset=5:4096,separator=tab".parse().unwrap();
        assert_eq!(spec.separator, Some(Separator::Byte(b'\t')));
        assert_eq!(spec.find("op").unwrap().role, Role::Op(OpCode::Hex));
        assert_eq!(spec.find("size").unwrap().place, Place::Title("length".to_owned()));
        assert_eq!(spec.find("offset").unwrap().role, Role::Offset(SizeUnit::Bytes(4096)));
    }

    #[test]
    fn an_invalid_description_is_explained() {
        for (text, message) in [
            ("", "the column of the time is missing, as in time=1:s"),
            ("time", "`time` is no description of a column"),
            ("time=1,size=2:bytes", "the unit of time is missing: time=N:s names it"),
            ("time=1:min,size=2:bytes", "the unit `min` of time is not one of s, ms"),
            ("time=0:s,size=2:bytes", "`time=0:s`: columns are counted from 1"),
            ("time=1:s,size=2", "the unit of size is missing: size=N:bytes names it"),
            ("time=1:s,size=2:GB", "the unit `GB` of size is not one of bytes"),
            ("time=1:s", "the column of the size is missing"),
            ("time=1:s,size=2:bytes,op=3:hexa", "the form `hexa` of op is not known"),
            ("time=1:s,size=2:bytes,lba=3", "the column `lba` is not known"),
            ("time=1:s,time=2:s", "time is described twice"),
            ("completed=1:s,size=2:bytes", "completed needs latency"),
            ("time=1:s,completed=1:s,size=2:bytes", "time (of the submission) and completed exclude"),
            ("time=1:s,size=2:bytes,pid=3:us", "pid has no unit"),
            ("time=1:s,size=:bytes", "`size=:bytes`: the number or the title of the column is missing"),
            ("time=1:s,size=2:bytes,separator=x", "the separator `x` is not known"),
        ] {
            let error = text.parse::<ColumnSpec>().unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
