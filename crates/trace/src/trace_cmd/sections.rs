//! The header of version 7: options that point to sections.

use std::io::{BufReader, SeekFrom};

use super::compression::Compression;
use super::fields::FieldReader;
use super::layout::{CpuPlace, Layout};
use super::options::{CPUS_MAX, take_option};
use super::{Error, ReadSeek};

/// Maximum number of sections of options; real files have one or two.
const OPTION_SECTIONS_MAX: usize = 1024;
/// The flag of a compressed section.
const COMPRESSED: u16 = 1;

const SECTION_OPTIONS: u16 = 0;
const SECTION_HEADER_INFO: u16 = 16;
const SECTION_FTRACE_FORMATS: u16 = 17;
const SECTION_FORMATS: u16 = 18;
const SECTION_PROCESS_NAMES: u16 = 21;

const OPTION_DONE: u16 = 0;
const OPTION_BUFFER: u16 = 3;
const OPTION_BUFFER_TEXT: u16 = 22;

/// Reads the options and the sections that they point to.
pub(super) fn read(
    file: &mut (dyn ReadSeek + Send),
    layout: &mut Layout,
    compression: Compression,
    first: u64,
) -> Result<(), Error> {
    let mut sections = Sections { file, compression, is_big_endian: layout.is_big_endian };
    let mut position = first;
    for _ in 0..OPTION_SECTIONS_MAX {
        if position == 0 {
            return if layout.page.data == 0 {
                Err(Error::Bad { position: first, what: "the options name no HEADER INFO section".to_owned() })
            } else {
                Ok(())
            };
        }
        let section = sections.section(SECTION_OPTIONS, position)?;
        position = read_options(&mut sections, layout, &section, position)?;
    }
    Err(Error::Bad { position, what: format!("there are more than {OPTION_SECTIONS_MAX} sections of options") })
}

/// Reads a section of options and returns the position of the next one, or 0.
fn read_options(sections: &mut Sections<'_>, layout: &mut Layout, section: &[u8], position: u64) -> Result<u64, Error> {
    let mut fields = FieldReader::new(section, layout.is_big_endian, position);
    loop {
        let option = fields.u16("an option")?;
        let bytes = fields.u32("the size of an option")?;
        let data = fields.block(u64::from(bytes), "an option")?;
        let mut inner = FieldReader::new(data.as_slice(), layout.is_big_endian, fields.position());
        match option {
            OPTION_DONE => return inner.u64("the position of the next options"),
            OPTION_BUFFER => read_buffer(sections, layout, &mut inner)?,
            OPTION_BUFFER_TEXT => {
                let what = "the text of a latency tracer is not read: trace-cmd report prints it";
                layout.remarks.push(what.to_owned());
            }
            SECTION_HEADER_INFO | SECTION_FTRACE_FORMATS | SECTION_FORMATS | SECTION_PROCESS_NAMES => {
                let place = inner.u64("the position of a section")?;
                let section = sections.section(option, place)?;
                let mut fields = FieldReader::new(section.as_slice(), layout.is_big_endian, place);
                match option {
                    SECTION_HEADER_INFO => layout.read_header_info(&mut fields)?,
                    SECTION_FTRACE_FORMATS => layout.read_ftrace_formats(&mut fields)?,
                    SECTION_FORMATS => layout.read_formats(&mut fields)?,
                    _ => layout.read_process_names(&mut fields)?,
                }
            }
            _ => take_option(layout, option, &data),
        }
    }
}

/// Reads the description of the pages of one instance.
fn read_buffer(sections: &mut Sections<'_>, layout: &mut Layout, fields: &mut FieldReader<&[u8]>) -> Result<(), Error> {
    let place = fields.u64("the position of the trace data")?;
    fields.string("the name of the instance")?;
    let clock = fields.string("the clock of the instance")?;
    if !clock.is_empty() {
        layout.set_clock(&clock);
    }
    let page_bytes = fields.u32("the size of a page")?;
    layout.set_page_bytes(page_bytes).map_err(|what| fields.bad(what))?;
    let cpus = fields.u32("the number of CPUs")?;
    if cpus > CPUS_MAX {
        return Err(fields.bad(format!("{cpus} CPUs: {CPUS_MAX} is the most")));
    }
    let compression = if cpus > 0 && sections.is_compressed(place)? { sections.compression } else { Compression::None };
    for _ in 0..cpus {
        let number = fields.u32("the number of a CPU")?;
        let offset = fields.u64("the position of the data of a CPU")?;
        let bytes = fields.u64("the size of the data of a CPU")?;
        layout.cpus.push(CpuPlace { number, offset, bytes, compression });
    }
    Ok(())
}

/// Access to the sections of a file.
struct Sections<'a> {
    file: &'a mut (dyn ReadSeek + Send),
    compression: Compression,
    is_big_endian: bool,
}

impl Sections<'_> {
    fn fields(&mut self, position: u64) -> Result<FieldReader<BufReader<&mut (dyn ReadSeek + Send)>>, Error> {
        self.file.seek(SeekFrom::Start(position))?;
        Ok(FieldReader::new(BufReader::new(&mut *self.file), self.is_big_endian, position))
    }

    /// Returns the unpacked contents of a section.
    fn section(&mut self, expected: u16, position: u64) -> Result<Vec<u8>, Error> {
        let compression = self.compression;
        let mut fields = self.fields(position)?;
        let id = fields.u16("the number of a section")?;
        if id != expected {
            return Err(fields.bad(format!("section {id} stands where section {expected} should be")));
        }
        let flags = fields.u16("the flags of a section")?;
        fields.u32("the description of a section")?;
        let bytes = fields.u64("the size of a section")?;
        if flags & COMPRESSED == 0 {
            return fields.block(bytes, "a section");
        }
        let packed = fields.u32("the compressed size of a section")?;
        let unpacked = fields.u32("the size of a section")?;
        let block = fields.block(u64::from(packed), "a compressed section")?;
        compression.unpack(&block, unpacked as usize).map_err(|what| fields.bad(what))
    }

    /// Returns true if the trace data of a section are compressed.
    fn is_compressed(&mut self, position: u64) -> Result<bool, Error> {
        let mut fields = self.fields(position)?;
        fields.u16("the number of a section")?;
        Ok(fields.u16("the flags of a section")? & COMPRESSED != 0)
    }
}
