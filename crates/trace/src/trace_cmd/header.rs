//! The beginning of a file, and the whole header of version 6.

use std::io::{BufReader, Read, SeekFrom};

use super::compression::Compression;
use super::fields::FieldReader;
use super::layout::{CpuPlace, Layout};
use super::options::{CPUS_MAX, take_option};
use super::sections;
use super::{Error, MAGIC, ReadSeek};

/// The option of an instance.
const OPTION_BUFFER: u16 = 3;

/// Reads the header of a file.
pub(super) fn read(file: &mut (dyn ReadSeek + Send)) -> Result<Layout, Error> {
    file.seek(SeekFrom::Start(0))?;
    let mut fields = FieldReader::new(BufReader::new(&mut *file), false, 0);
    let magic: [u8; 10] = match fields.array("the magic number") {
        Ok(magic) => magic,
        Err(Error::Bad { .. }) => [0; 10],
        Err(error) => return Err(error),
    };
    if magic != MAGIC {
        let what = "the magic number of trace-cmd is missing: 17 08 44 and \"tracing\" would be right";
        return Err(Error::Bad { position: 0, what: what.to_owned() });
    }
    let version = fields.string("the version")?;
    let mut layout = Layout {
        version: match version.as_slice() {
            b"6" => 6,
            b"7" => 7,
            other => return Err(fields.bad(format!("version \"{}\": 6 and 7 are read", other.escape_ascii()))),
        },
        ..Layout::default()
    };
    layout.is_big_endian = match fields.array("the byte order")? {
        [0] => false,
        [1] => true,
        [other] => return Err(fields.bad(format!("the byte order {other}: 0 (little) or 1 (big) would be right"))),
    };
    fields.set_big_endian(layout.is_big_endian);
    // The size of a long in programs of the recorded machine; pages have that of its kernel.
    fields.array::<1>("the size of a long")?;
    let page_bytes = fields.u32("the size of a page")?;
    layout.set_page_bytes(page_bytes).map_err(|what| fields.bad(what))?;
    if layout.version == 6 {
        read_version_6(&mut layout, &mut fields)?;
        return Ok(layout);
    }
    let name = fields.string("the name of the compression")?;
    fields.string("the version of the compression")?;
    let compression = Compression::of(&name).ok_or_else(|| {
        fields.bad(format!("the compression \"{}\" is not known: none, zlib and zstd are", name.escape_ascii()))
    })?;
    let options = fields.u64("the position of the options")?;
    drop(fields);
    sections::read(file, &mut layout, compression, options)?;
    Ok(layout)
}

fn read_version_6<R: Read>(layout: &mut Layout, fields: &mut FieldReader<R>) -> Result<(), Error> {
    layout.read_header_info(fields)?;
    layout.read_ftrace_formats(fields)?;
    layout.read_formats(fields)?;
    for what in ["the symbols of the kernel", "the formats of trace_printk"] {
        let bytes = fields.u32(what)?;
        fields.block(u64::from(bytes), what)?;
    }
    layout.read_process_names(fields)?;
    let cpus = fields.u32("the number of CPUs")?;
    if cpus > CPUS_MAX {
        return Err(fields.bad(format!("{cpus} CPUs: {CPUS_MAX} is the most")));
    }
    loop {
        match &fields.array::<10>("the kind of the data")? {
            b"options  \0" => read_options(layout, fields)?,
            b"flyrecord\0" => break,
            b"latency  \0" => {
                let what = "the file has the text of a latency tracer instead of events: trace-cmd report prints it";
                return Err(fields.bad(what));
            }
            other => {
                let what = format!("\"{}\" stands where options or flyrecord should be", other.escape_ascii());
                return Err(fields.bad(what));
            }
        }
    }
    for number in 0..cpus {
        let offset = fields.u64("the position of the data of a CPU")?;
        let bytes = fields.u64("the size of the data of a CPU")?;
        layout.cpus.push(CpuPlace { number, offset, bytes, compression: Compression::None });
    }
    Ok(())
}

fn read_options<R: Read>(layout: &mut Layout, fields: &mut FieldReader<R>) -> Result<(), Error> {
    loop {
        let option = fields.u16("an option")?;
        if option == 0 {
            return Ok(());
        }
        let bytes = fields.u32("the size of an option")?;
        let data = fields.block(u64::from(bytes), "an option")?;
        if option == OPTION_BUFFER {
            let name = data.get(8..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
            let name = name.escape_ascii();
            layout.remarks.push(format!(
                "the instance {name} is not read, because the format of version 6 does not define its place: \
                 `trace-cmd convert` writes version 7"
            ));
        }
        take_option(layout, option, &data);
    }
}
