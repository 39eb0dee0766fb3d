//! Reads the traces of Florida International University: `time pid process LBA size R|W major minor
//! MD5`, separated by blanks.
//!
//! Times are ns, addresses and sizes count blocks of 512 bytes. The name of a process may contain
//! blanks. The checksum of the contents is left out.

use crate::event::{Action, Event, Rwbs};
use crate::process_names::ProcessNames;
use crate::text::{
    Fields, Head, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, Units, decide_unit, device_of_numbers,
    number, shown,
};

/// Parser of the lines.
#[derive(Debug)]
pub struct Fiu {
    units: Units,
    names: ProcessNames,
}

impl Fiu {
    /// Creates a parser for a text with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(
        head: &[u8],
        specified: Option<TimeUnit>,
        sector_bytes: u32,
    ) -> Result<(RequestLines<Fiu>, Option<String>), String> {
        let time = |line: &[u8]| number(Fields::blanks(line).next()?, "").ok();
        let why = "as the description of these traces says";
        let (unit, remark) = decide_unit(specified, TimeUnit::Nanosecond, why, &Head::of(head, time))?;
        let fiu = Fiu { units: Units::new(unit, sector_bytes), names: ProcessNames::default() };
        Ok((RequestLines::new(fiu), remark))
    }
}

/// Returns the position of the operation in the fields of a line: the last `R` or `W` between the
/// numbers of address and size and those of the device.
pub fn operation_at(fields: &[&[u8]]) -> Option<usize> {
    let is_number = |at: usize| fields.get(at).is_some_and(|field| number::<u64>(field, "").is_ok());
    (4..fields.len()).rev().find(|&at| {
        operation(fields.get(at).copied().unwrap_or_default()).is_some()
            && [at - 2, at - 1, at + 1, at + 2].into_iter().all(is_number)
    })
}

fn operation(word: &[u8]) -> Option<Rwbs> {
    match word.to_ascii_lowercase().as_slice() {
        b"r" | b"read" => Some(Rwbs::READ),
        b"w" | b"write" => Some(Rwbs::WRITE),
        _ => None,
    }
}

impl RequestFormat for Fiu {
    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String> {
        let all: Vec<&[u8]> = Fields::blanks(line).collect();
        let at = operation_at(&all).ok_or_else(|| {
            format!("{} has no R or W between address, size and device: \"0 4892 syslogd 904265560 8 W 6 0\" would be right", shown(line))
        })?;
        let field = |at: usize| all.get(at).copied().unwrap_or_default();
        let time_ns = self.units.ns(field(0), "the time")?;
        let pid = number(field(1), "the process id")?;
        let name = all.get(2..at - 2).unwrap_or_default().join(&b' ');
        if !name.is_empty() && self.names.set(pid, &name) {
            out.batch.push_with(Event { pid, ..Event::new(time_ns, Action::Process) }, &name);
        }
        let device = device_of_numbers(field(at + 1), field(at + 2))?;
        Ok(Request {
            time_ns,
            device,
            op: operation(field(at)).unwrap_or_default(),
            offset: self.units.bytes(field(at - 2), "the address")?,
            bytes: self.units.bytes(field(at - 1), "the size")?,
            pid,
            ..Request::default()
        })
    }
}
