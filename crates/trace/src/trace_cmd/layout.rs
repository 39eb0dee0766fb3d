//! What the header of a file describes, and the parts of it that both versions share.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use super::Error;
use super::compression::Compression;
use super::event_format::{EventFormat, Field};
use super::fields::FieldReader;

/// Clocks of the kernel that count ns.
const CLOCKS_OF_NS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
/// Largest page of a ring buffer in bytes: the largest sub-buffer that Linux supports.
const PAGE_BYTES_MAX: u32 = 16 << 20;

/// The description of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub version: u32,
    pub is_big_endian: bool,
    /// Size of a page of the ring buffer in bytes.
    pub page_bytes: usize,
    pub page: PageFields,
    pub formats: HashMap<u16, EventFormat>,
    pub process_names: BTreeMap<u32, Vec<u8>>,
    pub clock: String,
    /// Multiplier and shift from readings of the clock to ns.
    pub scale: Option<(u32, u32)>,
    /// Time in ns that is added to each time.
    pub offset_ns: i64,
    pub cpus: Vec<CpuPlace>,
    pub remarks: Vec<String>,
    /// Position and size of the number of the event in a record.
    pub type_field: Option<Field>,
}

/// Positions of the fields of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageFields {
    pub timestamp: usize,
    pub commit: usize,
    pub commit_bytes: usize,
    pub data: usize,
}

/// Position of the pages of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuPlace {
    pub number: u32,
    pub offset: u64,
    pub bytes: u64,
    pub compression: Compression,
}

impl Layout {
    /// Returns the number of the event of a record.
    pub fn type_of(&self, data: &[u8]) -> Option<u16> {
        let id = self.type_field.as_ref()?.number(data, self.is_big_endian)?;
        u16::try_from(id).ok()
    }

    /// Converts a reading of the clock to ns, if the file has the factor.
    pub fn time_ns(&self, reading: u64) -> u64 {
        let ns = match self.scale {
            Some((factor, shift)) => {
                let ns = (u128::from(reading) * u128::from(factor)) >> shift.min(127);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
            None => reading,
        };
        ns.saturating_add_signed(self.offset_ns)
    }

    /// Returns true if [`Layout::time_ns`] returns ns.
    pub fn has_ns(&self) -> bool {
        self.scale.is_some() || self.clock.is_empty() || CLOCKS_OF_NS.contains(&self.clock.as_str())
    }

    /// Sets the size of a page.
    ///
    /// # Errors
    /// Returns a message if no ring buffer has such pages.
    pub fn set_page_bytes(&mut self, bytes: u32) -> Result<(), String> {
        if !(512..=PAGE_BYTES_MAX).contains(&bytes) {
            return Err(format!("pages of {bytes} bytes: 512 to {PAGE_BYTES_MAX} would be right"));
        }
        self.page_bytes = bytes as usize;
        Ok(())
    }

    /// Sets the clock from the name, or from the contents of `trace_clock`, in which the selected
    /// clock is in brackets.
    pub fn set_clock(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let selected = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
        self.clock = selected.unwrap_or(&text).trim_matches(['\0', ' ', '\n']).to_owned();
    }

    /// Reads the texts `header_page` and `header_event`.
    pub fn read_header_info<R: Read>(&mut self, fields: &mut FieldReader<R>) -> Result<(), Error> {
        fields.expect(b"header_page")?;
        let bytes = fields.u64("the size of header_page")?;
        let text = fields.block(bytes, "header_page")?;
        self.page = PageFields::parse(&text).map_err(|what| fields.bad(what))?;
        fields.expect(b"header_event")?;
        let bytes = fields.u64("the size of header_event")?;
        // The layout of record heads has been the same since the ring buffer exists.
        fields.block(bytes, "header_event")?;
        Ok(())
    }

    /// Reads the formats of the events of ftrace itself.
    pub fn read_ftrace_formats<R: Read>(&mut self, fields: &mut FieldReader<R>) -> Result<(), Error> {
        let count = fields.u32("the number of events of ftrace")?;
        (0..count).try_for_each(|_| self.read_format("ftrace", fields))
    }

    /// Reads the formats of the events of all subsystems.
    pub fn read_formats<R: Read>(&mut self, fields: &mut FieldReader<R>) -> Result<(), Error> {
        let systems = fields.u32("the number of subsystems")?;
        for _ in 0..systems {
            let system = fields.string("the name of a subsystem")?;
            let system = String::from_utf8_lossy(&system).into_owned();
            let count = fields.u32("the number of events of a subsystem")?;
            (0..count).try_for_each(|_| self.read_format(&system, fields))?;
        }
        Ok(())
    }

    fn read_format<R: Read>(&mut self, system: &str, fields: &mut FieldReader<R>) -> Result<(), Error> {
        let bytes = fields.u64("the size of the format of an event")?;
        let text = fields.block(bytes, "the format of an event")?;
        let format = EventFormat::parse(system, &text).map_err(|what| fields.bad(what))?;
        if self.type_field.is_none() {
            self.type_field = format.field("common_type").cloned();
        }
        self.formats.insert(format.id, format);
        Ok(())
    }

    /// Reads the names of processes: a process id and a name on each line.
    pub fn read_process_names<R: Read>(&mut self, fields: &mut FieldReader<R>) -> Result<(), Error> {
        let bytes = fields.u64("the size of the names of processes")?;
        let text = fields.block(bytes, "the names of processes")?;
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.splitn(2, |byte| *byte == b' ');
            let pid = words.next().and_then(|pid| std::str::from_utf8(pid).ok()?.trim().parse().ok());
            if let (Some(pid), Some(name)) = (pid, words.next()) {
                self.process_names.insert(pid, name.to_vec());
            }
        }
        Ok(())
    }
}

impl PageFields {
    /// Parses the text `header_page` of tracefs.
    fn parse(text: &[u8]) -> Result<PageFields, String> {
        let text = String::from_utf8_lossy(text);
        let fields = text.lines().map(str::trim).filter(|line| line.starts_with("field:")).map(Field::parse);
        let fields = fields.collect::<Result<Vec<Field>, String>>()?;
        let field = |name: &str| {
            let found = fields.iter().find(|field| field.name == name);
            found.ok_or_else(|| format!("header_page has no field {name}"))
        };
        let commit = field("commit")?;
        let page = PageFields {
            timestamp: field("timestamp")?.offset,
            commit: commit.offset,
            commit_bytes: commit.size,
            data: field("data")?.offset,
        };
        if !matches!(page.commit_bytes, 4 | 8) || page.data > 4096 || page.timestamp > 4096 || page.commit > 4096 {
            return Err(format!("header_page describes no page of a ring buffer: {page:?}"));
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_64_bit_kernel_is_parsed() {
        let text = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let expected = PageFields { timestamp: 0, commit: 8, commit_bytes: 8, data: 16 };
        assert_eq!(PageFields::parse(text), Ok(expected));
        assert!(PageFields::parse(b"").unwrap_err().contains("no field commit"));
    }

    #[test]
    fn the_selected_clock_is_in_brackets() {
        let mut layout = Layout::default();
        layout.set_clock(b"local global [mono] boot\n\0");
        assert_eq!((layout.clock.as_str(), layout.has_ns()), ("mono", true));
        layout.set_clock(b"x86-tsc\0");
        assert!(!layout.has_ns());
        // 1.5 GHz: a reading takes 2/3 ns, here 683/1024.
        layout.scale = Some((683, 10));
        assert_eq!((layout.has_ns(), layout.time_ns(1_500_000)), (true, 1_000_488));
    }
}
