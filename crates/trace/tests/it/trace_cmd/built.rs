//! Files that are built to the manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5), for what
//! trace-cmd cannot write here: other byte orders, and compression with zlib.

use std::io::{Cursor, Write as _};

use hoistway_trace::trace_cmd::TraceDat;

const PAGE_BYTES: usize = 4096;
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const FORMAT: &str = "name: block_demo\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:char name[8];\toffset:16;\tsize:8;\tsigned:0;\n";
const PROCESS_NAMES: &str = "7 fio\n8 my backup\n";
/// The type of a record that extends the time of the next.
const TIME_EXTEND: u32 = 30;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Packing {
    None,
    Zlib,
    Zstd,
}

/// Writes numbers in a byte order.
#[derive(Clone, Default)]
struct Bytes {
    is_big_endian: bool,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(is_big_endian: bool) -> Bytes {
        Bytes { is_big_endian, bytes: Vec::new() }
    }

    fn number(mut self, bytes: usize, number: u64) -> Bytes {
        let all = if self.is_big_endian { number << (64 - 8 * bytes) } else { number };
        let all = if self.is_big_endian { all.to_be_bytes() } else { all.to_le_bytes() };
        self.bytes.extend_from_slice(&all[..bytes]);
        self
    }

    fn text(mut self, text: &str) -> Bytes {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes a text after its length.
    fn sized(self, bytes: usize, text: &str) -> Bytes {
        self.number(bytes, text.len() as u64).text(text)
    }

    /// Writes the head of a record: its type in the lower five bits, or in the upper five.
    fn head(self, kind: u32, delta: u32) -> Bytes {
        let head = if self.is_big_endian { kind << 27 | delta } else { delta << 5 | kind };
        self.number(4, head.into())
    }

    /// Writes an event of 24 bytes.
    fn event(self, delta: u32, pid: u64, sector: u64) -> Bytes {
        self.head(6, delta).number(2, 77).number(2, 0).number(4, pid).number(8, sector).raw(b"name\0abc")
    }

    /// Returns a page with these records.
    fn page(self, time: u64) -> Vec<u8> {
        let order = Bytes::new(self.is_big_endian);
        let mut page = order.number(8, time).number(8, self.bytes.len() as u64).raw(&self.bytes).bytes;
        page.resize(PAGE_BYTES, 0);
        page
    }
}

/// The pages of two CPUs.
fn pages(is_big_endian: bool) -> [Vec<Vec<u8>>; 2] {
    let order = || Bytes::new(is_big_endian);
    let extended = order().head(TIME_EXTEND, 3).number(4, 1).event(1, 8, 24);
    [
        vec![order().event(10, 7, 8).event(5, 7, 16).page(1000), extended.page(5000)],
        vec![order().event(2, 8, 1 << 40).page(1010)],
    ]
}

/// Time, CPU, process, sector and name of each record in the order of time.
fn expected() -> Vec<(u64, u32, u64, u64, Vec<u8>)> {
    let row = |time: u64, cpu: u32, pid: u64, sector: u64| (time, cpu, pid, sector, b"name".to_vec());
    [(1010, 0, 7, 8), (1012, 1, 8, 1 << 40), (1015, 0, 7, 16), (5000 + 3 + (1 << 27) + 1, 0, 8, 24)]
        .map(|(time, cpu, pid, sector)| row(time, cpu, pid, sector))
        .to_vec()
}

fn beginning(version: &str, is_big_endian: bool) -> Bytes {
    let order = Bytes::new(is_big_endian).text("\x17\x08\x44tracing").text(version);
    order.number(1, is_big_endian.into()).number(1, 8).number(4, PAGE_BYTES as u64)
}

/// The texts of the header without those of processes: of pages, of ftrace's events, of all events.
fn texts(is_big_endian: bool) -> [Bytes; 3] {
    let order = || Bytes::new(is_big_endian);
    [
        order().text("header_page\0").sized(8, HEADER_PAGE).text("header_event\0").sized(8, "# head"),
        order().number(4, 0),
        order().number(4, 1).text("block\0").number(4, 1).sized(8, FORMAT),
    ]
}

fn version_6(is_big_endian: bool) -> Vec<u8> {
    let [info, ftrace, formats] = texts(is_big_endian);
    let file = beginning("6\0", is_big_endian).raw(&info.bytes).raw(&ftrace.bytes).raw(&formats.bytes);
    let file = file.number(4, 0).number(4, 0).sized(8, PROCESS_NAMES).number(4, 2);
    let mut file = file.text("options  \0").number(2, 4).sized(4, "[local] mono\0").number(2, 0).text("flyrecord\0");
    let mut data = Vec::new();
    for pages in pages(is_big_endian) {
        let bytes = pages.concat();
        file = file.number(8, (PAGE_BYTES + data.len()) as u64).number(8, bytes.len() as u64);
        data.extend(bytes);
    }
    assert!(file.bytes.len() <= PAGE_BYTES);
    file.bytes.resize(PAGE_BYTES, 0);
    [file.bytes, data].concat()
}

fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::None => bytes.to_vec(),
        Packing::Zlib => {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            zlib.write_all(bytes).unwrap();
            zlib.finish().unwrap()
        }
        Packing::Zstd => zstd::encode_all(bytes, 3).unwrap(),
    }
}

/// A block after its compressed and its unpacked size.
fn block(is_big_endian: bool, packing: Packing, bytes: &[u8]) -> Vec<u8> {
    let packed = packed(packing, bytes);
    Bytes::new(is_big_endian).number(4, packed.len() as u64).number(4, bytes.len() as u64).raw(&packed).bytes
}

fn section(is_big_endian: bool, packing: Packing, id: u64, contents: &[u8]) -> Vec<u8> {
    let is_packed = packing != Packing::None;
    let contents = if is_packed { block(is_big_endian, packing, contents) } else { contents.to_vec() };
    let order = Bytes::new(is_big_endian).number(2, id).number(2, is_packed.into()).number(4, 0);
    order.number(8, contents.len() as u64).raw(&contents).bytes
}

fn version_7(is_big_endian: bool, packing: Packing) -> Vec<u8> {
    let name = match packing {
        Packing::None => "none\0\0",
        Packing::Zlib => "zlib\x001.2.13\0",
        Packing::Zstd => "zstd\x001.5.4\0",
    };
    let file = beginning("7\0", is_big_endian).text(name);
    // The position of the options follows; they are written last.
    let options_at = file.bytes.len();
    let mut file = file.number(8, 0).bytes;
    let mut options = Bytes::new(is_big_endian);
    let [info, ftrace, formats] = texts(is_big_endian);
    let names = Bytes::new(is_big_endian).sized(8, PROCESS_NAMES);
    for (id, contents) in [(16, info), (17, ftrace), (18, formats), (21, names)] {
        options = options.number(2, id).number(4, 8).number(8, file.len() as u64);
        file.extend(section(is_big_endian, packing, id, &contents.bytes));
    }
    let data_at = file.len() as u64;
    let head = Bytes::new(is_big_endian).number(2, 3).number(2, u64::from(packing != Packing::None));
    file.extend(head.number(4, 0).number(8, 0).bytes);
    let mut buffer =
        Bytes::new(is_big_endian).number(8, data_at).text("\0mono\0").number(4, PAGE_BYTES as u64).number(4, 2);
    for (cpu, pages) in pages(is_big_endian).into_iter().enumerate() {
        let data = match packing {
            Packing::None => pages.concat(),
            // Each page is a chunk.
            _ => {
                let chunks = pages.iter().map(|page| block(is_big_endian, packing, page)).collect::<Vec<_>>();
                Bytes::new(is_big_endian).number(4, pages.len() as u64).raw(&chunks.concat()).bytes
            }
        };
        buffer = buffer.number(4, cpu as u64).number(8, file.len() as u64).number(8, data.len() as u64);
        file.extend(data);
    }
    options = options.number(2, 3).number(4, buffer.bytes.len() as u64).raw(&buffer.bytes);
    options = options.number(2, 0).number(4, 8).number(8, 0);
    let position = Bytes::new(is_big_endian).number(8, file.len() as u64).bytes;
    file[options_at..options_at + 8].copy_from_slice(&position);
    file.extend(section(is_big_endian, packing, 0, &options.bytes));
    file
}

fn check(name: &str, version: u32, bytes: Vec<u8>) {
    let mut dat = TraceDat::open(Box::new(Cursor::new(bytes))).unwrap_or_else(|error| panic!("{name}{error}"));
    assert_eq!((dat.version(), dat.has_ns()), (version, true), "{name}");
    let names = [(7, b"fio".to_vec()), (8, b"my backup".to_vec())];
    assert_eq!(dat.process_names().clone().into_iter().collect::<Vec<_>>(), names, "{name}");
    let mut found = Vec::new();
    while let Some(record) = dat.next_record().unwrap() {
        let format = record.format.unwrap();
        assert_eq!((format.system.as_str(), format.name.as_str()), ("block", "block_demo"), "{name}");
        let number = |field: &str| format.field(field).unwrap().number(record.data, record.is_big_endian).unwrap();
        let text = format.field("name").unwrap().text(record.data, record.is_big_endian).unwrap().to_vec();
        found.push((record.time_ns, record.cpu, number("common_pid"), number("sector"), text));
    }
    assert_eq!(found, expected(), "{name}");
    assert_eq!(dat.losses(), &Default::default(), "{name}");
}

#[test]
fn both_byte_orders_of_version_6_have_the_same_records() {
    check("little-endian", 6, version_6(false));
    check("big-endian", 6, version_6(true));
}

#[test]
fn all_compressions_and_byte_orders_of_version_7_have_the_same_records() {
    for packing in [Packing::None, Packing::Zlib, Packing::Zstd] {
        for is_big_endian in [false, true] {
            check(&format!("{packing:?}, big-endian: {is_big_endian}"), 7, version_7(is_big_endian, packing));
        }
    }
}

#[test]
fn a_damaged_chunk_of_zlib_is_reported_with_its_position() {
    let mut bytes = version_7(false, Packing::Zlib);
    // The last two blocks with the magic number of zlib are the options and the page of CPU 1.
    let options = bytes.windows(2).rposition(|pair| pair == [0x78, 0xDA]).unwrap();
    let page = bytes[..options].windows(2).rposition(|pair| pair == [0x78, 0xDA]).unwrap();
    bytes[page] = 0;
    let failed = TraceDat::open(Box::new(Cursor::new(bytes))).err().unwrap().to_string();
    assert!(failed.contains(&format!("at byte {}: a compressed", page - 8)), "{failed}");
}
