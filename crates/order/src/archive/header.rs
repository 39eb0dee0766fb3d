//! The headers of an archive member.
//!
//! The layout of the blocks is that of the `tar` crate. The digits are written here: the setters of
//! the crate format each number through an allocated string, and a small file needs twenty fields.

use std::borrow::Cow;

use rustix::fs::{Stat, major, minor};
use tar::{EntryType, GnuExtSparseHeader, GnuHeader, GnuSparseHeader, Header};

use super::block::fill_block;
use super::pax;
use super::sparse::SparseMap;

/// The archive format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// POSIX.1-2001: ustar headers, and extended headers for values that do not fit.
    #[default]
    Pax,
    /// The format of GNU tar: no nanoseconds, no extended attributes.
    Gnu,
    /// POSIX.1-1988. Files that do not fit are left out with an error.
    Ustar,
}

/// The contents of a member's headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Path in the archive. The path of a directory ends with a slash.
    pub name: &'a [u8],
    /// Link target; empty for other types.
    pub link: &'a [u8],
    pub kind: EntryType,
    pub metadata: InodeMetadata,
    /// Names of owner and group; empty if the system has no name.
    pub user: &'a [u8],
    pub group: &'a [u8],
    /// File size in bytes, including holes.
    pub size: u64,
    /// Extended attributes as PAX records.
    pub records: &'a [u8],
    /// Data ranges of a sparse file.
    pub map: Option<&'a SparseMap>,
}

/// The inode data that go into a header, except type and size.
#[derive(Clone, Copy, Debug)]
pub(super) struct InodeMetadata {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime_s: i64,
    pub mtime_ns: u32,
    /// Major and minor number of a device node.
    pub device: (u32, u32),
}

impl InodeMetadata {
    pub fn of(stat: &Stat) -> InodeMetadata {
        InodeMetadata {
            mode: stat.st_mode,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime_s: stat.st_mtime,
            mtime_ns: stat.st_mtime_nsec as u32,
            device: (major(stat.st_rdev), minor(stat.st_rdev)),
        }
    }
}

/// Why a format cannot represent a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The path is too long.
    #[error("file name is too long for the format ustar (255 bytes with a slash at the right place); not dumped")]
    Name,
    /// The link target is too long.
    #[error("link name is too long for the format ustar (100 bytes); not dumped")]
    Link,
    /// A number is out of range.
    #[error("{what} {value} out of range 0..{max} of the format ustar; not dumped")]
    Number {
        /// Name of the field.
        what: &'static str,
        /// The value.
        value: i128,
        /// The largest value that the field can hold.
        max: u64,
    },
}

impl Member<'_> {
    /// Appends all headers up to the start of the file data. Their length is a multiple of 512
    /// bytes.
    pub fn append(&self, format: Format, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match format {
            Format::Pax => {
                self.append_pax(out);
                Ok(())
            }
            Format::Gnu => {
                self.append_gnu(out);
                Ok(())
            }
            Format::Ustar => self.append_ustar(out),
        }
    }

    /// Returns the number of data bytes after the headers, without padding.
    fn stored(&self) -> u64 {
        self.map.map_or(self.size, SparseMap::stored)
    }

    fn append_pax(&self, out: &mut Vec<u8>) {
        let mut records = Vec::new();
        let map = self.map.map(SparseMap::text).unwrap_or_default();
        let size = self.stored() + map.len() as u64;
        let name = self.pax_names(&mut records);
        if self.user.len() > USER_MAX || !self.user.is_ascii() {
            pax::append(&mut records, b"uname", self.user);
        }
        if self.group.len() > USER_MAX || !self.group.is_ascii() {
            pax::append(&mut records, b"gname", self.group);
        }
        for (key, value, max) in [
            (&b"uid"[..], u64::from(self.metadata.uid), ID_MAX),
            (b"gid", u64::from(self.metadata.gid), ID_MAX),
            (b"size", size, SIZE_MAX),
            (b"SCHILY.devmajor", u64::from(self.metadata.device.0), ID_MAX),
            (b"SCHILY.devminor", u64::from(self.metadata.device.1), ID_MAX),
        ] {
            if value > max {
                pax::append_decimal(&mut records, key, value);
            }
        }
        if self.metadata.mtime_ns != 0
            || u64::try_from(self.metadata.mtime_s).is_ok_and(|s| s > SIZE_MAX)
            || self.metadata.mtime_s < 0
        {
            pax::append_time(&mut records, b"mtime", self.metadata.mtime_s, self.metadata.mtime_ns);
        }
        records.extend_from_slice(self.records);
        if !records.is_empty() {
            self.append_extended(EntryType::XHeader, b"PaxHeaders/", &records, out);
        }
        let mut header = self.begin(Magic::Ustar, &name);
        self.numbers(&mut header, size, |field, value, max| octal(field, if value > max { 0 } else { value }));
        push(header, out);
        out.extend_from_slice(&map);
    }

    /// Returns the name for the ustar header. A name or link target that does not fit becomes a PAX
    /// record.
    fn pax_names(&self, records: &mut Vec<u8>) -> Cow<'_, [u8]> {
        let is_long = split(self.name).is_none();
        let long_link = self.link.len() > NAME_MAX;
        let extended = is_long || self.map.is_some();
        if (extended && std::str::from_utf8(self.name).is_err())
            || (long_link && std::str::from_utf8(self.link).is_err())
        {
            // Records are UTF-8 unless `hdrcharset` says otherwise.
            pax::append(records, b"hdrcharset", b"BINARY");
        }
        if long_link {
            pax::append(records, b"linkpath", self.link);
        }
        let Some(map) = self.map else {
            if is_long {
                pax::append(records, b"path", self.name);
            }
            return Cow::Borrowed(self.name);
        };
        pax::append(records, b"GNU.sparse.major", b"1");
        pax::append(records, b"GNU.sparse.minor", b"0");
        pax::append(records, b"GNU.sparse.name", self.name);
        pax::append_decimal(records, b"GNU.sparse.realsize", map.size());
        // A reader without support for sparse files extracts map and data under this name.
        Cow::Owned([b"GNUSparseFile.0/", tail(self.name, 80)].concat())
    }

    fn append_gnu(&self, out: &mut Vec<u8>) {
        for (kind, name) in [(EntryType::GNULongLink, self.link), (EntryType::GNULongName, self.name)] {
            if name.len() > NAME_MAX {
                let mut text = name.to_vec();
                text.push(0);
                self.append_extended(kind, b"././@LongLink", &text, out);
            }
        }
        let mut header = self.begin(Magic::Gnu, self.name);
        self.numbers(&mut header, self.stored(), |field, value, max| {
            if value > max { binary(field, i128::from(value)) } else { octal(field, value) }
        });
        if u64::try_from(self.metadata.mtime_s).is_ok_and(|s| s <= SIZE_MAX) {
            octal(&mut header.as_old_mut().mtime, self.metadata.mtime_s.unsigned_abs());
        } else {
            binary(&mut header.as_old_mut().mtime, i128::from(self.metadata.mtime_s));
        }
        let Some(map) = self.map else { return push(header, out) };
        header.as_old_mut().linkflag = [EntryType::GNUSparse.as_byte()];
        let further = header.as_gnu_mut().map(|header| sparse_header(header, map)).unwrap_or_default();
        push(header, out);
        further.iter().for_each(|block| out.extend_from_slice(block.as_bytes()));
    }

    fn append_ustar(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if split(self.name).is_none() {
            return Err(FormatError::Name);
        }
        if self.link.len() > NAME_MAX {
            return Err(FormatError::Link);
        }
        for (what, value, max) in [
            ("uid", i128::from(self.metadata.uid), ID_MAX),
            ("gid", i128::from(self.metadata.gid), ID_MAX),
            ("size", i128::from(self.size), SIZE_MAX),
            ("time", i128::from(self.metadata.mtime_s), SIZE_MAX),
        ] {
            if !(0..=i128::from(max)).contains(&value) {
                return Err(FormatError::Number { what, value, max });
            }
        }
        let mut header = self.begin(Magic::Ustar, self.name);
        self.numbers(&mut header, self.size, |field, value, _| octal(field, value));
        push(header, out);
        Ok(())
    }

    /// Appends an extra header before the member's own header: PAX records or a GNU long name.
    fn append_extended(&self, kind: EntryType, name: &[u8], data: &[u8], out: &mut Vec<u8>) {
        let mut header = Header::new_ustar();
        let pax = kind == EntryType::XHeader;
        let extended = if pax { [name, tail(self.name, NAME_MAX - name.len())].concat() } else { name.to_vec() };
        let old = header.as_old_mut();
        old.name[..extended.len()].copy_from_slice(&extended);
        octal(&mut old.mode, 0o644);
        octal(&mut old.uid, 0);
        octal(&mut old.gid, 0);
        octal(&mut old.size, data.len() as u64);
        let mtime = u64::try_from(self.metadata.mtime_s).unwrap_or(0);
        octal(&mut old.mtime, if pax { mtime.min(SIZE_MAX) } else { 0 });
        old.linkflag = [kind.as_byte()];
        if !pax {
            gnu_magic(&mut header);
        }
        push(header, out);
        out.extend_from_slice(data);
        fill_block(out);
    }

    /// Creates a header without numbers. Names that do not fit are truncated; the extra header has
    /// them in full.
    fn begin(&self, magic: Magic, name: &[u8]) -> Header {
        let mut header = Header::new_ustar();
        if magic == Magic::Gnu {
            gnu_magic(&mut header);
        }
        header.as_old_mut().linkflag = [self.kind.as_byte()];
        let link = &self.link[..self.link.len().min(NAME_MAX)];
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
        let split = if magic == Magic::Gnu { None } else { split(name) };
        let (prefix, name) = split.unwrap_or((b"", &name[..name.len().min(NAME_MAX)]));
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        // The fields for owner names and devices are at the same offsets in GNU and ustar headers.
        let bytes = header.as_mut_bytes();
        bytes[PREFIX_AT..PREFIX_AT + prefix.len()].copy_from_slice(prefix);
        for (at, owner) in [(USER_AT, self.user), (GROUP_AT, self.group)] {
            let owner = &owner[..owner.len().min(USER_MAX)];
            bytes[at..at + owner.len()].copy_from_slice(owner);
        }
        header
    }

    /// Sets the numbers of a header. `write` receives the field, the value and the largest value in
    /// octal digits.
    fn numbers(&self, header: &mut Header, size: u64, write: impl Fn(&mut [u8], u64, u64)) {
        let old = header.as_old_mut();
        octal(&mut old.mode, u64::from(self.metadata.mode & 0o7777));
        write(&mut old.uid, u64::from(self.metadata.uid), ID_MAX);
        write(&mut old.gid, u64::from(self.metadata.gid), ID_MAX);
        write(&mut old.size, size, SIZE_MAX);
        write(&mut old.mtime, u64::try_from(self.metadata.mtime_s).unwrap_or(0), SIZE_MAX);
        if matches!(self.kind, EntryType::Char | EntryType::Block) {
            let bytes = header.as_mut_bytes();
            write(&mut bytes[MAJOR_AT..MAJOR_AT + 8], u64::from(self.metadata.device.0), ID_MAX);
            write(&mut bytes[MAJOR_AT + 8..MAJOR_AT + 16], u64::from(self.metadata.device.1), ID_MAX);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Magic {
    Ustar,
    Gnu,
}

/// Longest name or link target of a header, in bytes.
pub(super) const NAME_MAX: usize = 100;
const PREFIX_MAX: usize = 155;
/// Longest owner name in bytes, without the final zero.
const USER_MAX: usize = 31;
/// Largest number in seven octal digits.
const ID_MAX: u64 = 0o7_777_777;
/// Largest number in eleven octal digits.
const SIZE_MAX: u64 = 0o77_777_777_777;
const MAGIC_AT: usize = 257;
const USER_AT: usize = 265;
const GROUP_AT: usize = 297;
const MAJOR_AT: usize = 329;
const PREFIX_AT: usize = 345;

/// Splits a path into ustar's prefix and name. `None` if no slash is at a suitable position.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= NAME_MAX {
        return Some((b"", name));
    }
    let first = name.len().checked_sub(NAME_MAX + 1)?;
    // A slash at the end is not a split position: the name would be empty.
    let last = PREFIX_MAX.min(name.len() - 2);
    let slash = (first..=last).find(|at| name[*at] == b'/' && *at > 0)?;
    Some((&name[..slash], &name[slash + 1..]))
}

/// Returns the last component of a path, at most `most` bytes.
fn tail(name: &[u8], most: usize) -> &[u8] {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    &name[..name.len().min(most)]
}

fn gnu_magic(header: &mut Header) {
    header.as_mut_bytes()[MAGIC_AT..MAGIC_AT + 8].copy_from_slice(b"ustar  \0");
}

/// Writes octal digits into all bytes of a field but the last, which becomes zero.
fn octal(field: &mut [u8], value: u64) {
    let Some((last, digits)) = field.split_last_mut() else { return };
    *last = 0;
    let mut left = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left & 7) as u8;
        left >>= 3;
    }
}

/// Writes a number in GNU's binary form: the highest bit set, then two's complement.
fn binary(field: &mut [u8], value: i128) {
    let mut left = value;
    for byte in field.iter_mut().rev() {
        *byte = left as u8;
        left >>= 8;
    }
    if let Some(first) = field.first_mut() {
        *first |= 0x80;
    }
}

/// Sets the checksum of a header and appends the header.
fn push(mut header: Header, out: &mut Vec<u8>) {
    header.as_old_mut().cksum = [b' '; 8];
    let sum: u32 = header.as_bytes().iter().map(|byte| u32::from(*byte)).sum();
    let field = &mut header.as_old_mut().cksum;
    // Six digits, a zero and a space, by convention.
    octal(&mut field[..7], u64::from(sum));
    out.extend_from_slice(header.as_bytes());
}

/// Writes the first data ranges into a GNU header and returns extension blocks with the others.
fn sparse_header(header: &mut GnuHeader, map: &SparseMap) -> Vec<GnuExtSparseHeader> {
    binary_or_octal(&mut header.realsize, map.size());
    let pieces = map.marked();
    let (here, there) = pieces.split_at(pieces.len().min(header.sparse.len()));
    here.iter().zip(&mut header.sparse).for_each(|(piece, place)| sparse_place(place, *piece));
    let chunks = there.chunks(21);
    let count = chunks.len();
    header.isextended = [u8::from(count > 0)];
    chunks
        .enumerate()
        .map(|(index, chunk)| {
            let mut block = GnuExtSparseHeader::new();
            chunk.iter().zip(&mut block.sparse).for_each(|(piece, place)| sparse_place(place, *piece));
            block.isextended = [u8::from(index + 1 < count)];
            block
        })
        .collect()
}

fn sparse_place(place: &mut GnuSparseHeader, (offset, length): (u64, u64)) {
    binary_or_octal(&mut place.offset, offset);
    binary_or_octal(&mut place.numbytes, length);
}

fn binary_or_octal(field: &mut [u8], value: u64) {
    if value > SIZE_MAX { binary(field, i128::from(value)) } else { octal(field, value) }
}
