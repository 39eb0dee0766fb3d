//! Files that the guest hands to the host: a disk of the virtual machine, on which files follow one
//! another.
//!
//! Each file is a block of 512 bytes with `HWYFILE1`, the length of the file in bytes (8 bytes,
//! little-endian), the length of the name (2 bytes) and the name; and then its bytes, up to a
//! multiple of 512. A block without the magic ends the list: the disk is filled with zeros at
//! first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::{Outcome, system};

/// The serial number of the disk, by which the guest finds it.
pub const SERIAL: &str = "transfer";

const MAGIC: &[u8; 8] = b"HWYFILE1";
const BLOCK: u64 = 512;
/// The longest name of a file in bytes.
const NAME_MAX: usize = 400;

/// Appends a file to the transfer disk of the virtual machine.
pub fn send(name: &str, bytes: &[u8]) -> Outcome<()> {
    let disk = system::disk_with_serial(SERIAL)?.ok_or("the virtual machine has no transfer disk")?;
    let path = Path::new("/dev").join(disk);
    let mut disk = File::options().read(true).write(true).open(&path);
    let disk = disk.as_mut().map_err(|error| format!("{}: {error}", path.display()))?;
    append(disk, name, bytes).map_err(|error| format!("cannot write {name} to {}: {error}", path.display()))
}

fn append(disk: &mut (impl Read + Write + Seek), name: &str, bytes: &[u8]) -> io::Result<()> {
    if name.len() > NAME_MAX {
        return Err(io::Error::other(format!("the name has {} bytes; {NAME_MAX} are the most", name.len())));
    }
    disk.seek(SeekFrom::Start(0))?;
    while let Some((_, length)) = header(disk)? {
        disk.seek(SeekFrom::Current(i64::try_from(padded(length)).unwrap_or(i64::MAX)))?;
    }
    disk.seek(SeekFrom::Current(-(BLOCK as i64)))?;
    let length = bytes.len() as u64;
    let mut block = Vec::with_capacity(BLOCK as usize);
    block.extend_from_slice(MAGIC);
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&(name.len() as u16).to_le_bytes());
    block.extend_from_slice(name.as_bytes());
    block.resize(BLOCK as usize, 0);
    disk.write_all(&block)?;
    disk.write_all(bytes)?;
    disk.write_all(&vec![0; (padded(length) - length) as usize])?;
    disk.flush()
}

/// Reads the files of a transfer disk one after the other.
pub fn receive(disk: &Path, mut each: impl FnMut(&str, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut disk = io::BufReader::new(File::open(disk)?);
    while let Some((name, length)) = header(&mut disk)? {
        let mut bytes = vec![0; padded(length) as usize];
        disk.read_exact(&mut bytes)?;
        each(&name, bytes.get(..length as usize).unwrap_or_default())?;
    }
    Ok(())
}

/// Reads the block before a file: its name and its length. Returns None at the end of the list.
fn header(disk: &mut impl Read) -> io::Result<Option<(String, u64)>> {
    let mut block = [0; BLOCK as usize];
    disk.read_exact(&mut block)?;
    let (magic, rest) = block.split_at(MAGIC.len());
    let (length, rest) = rest.split_at(8);
    let (name_length, rest) = rest.split_at(2);
    if magic != MAGIC {
        return Ok(None);
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let name = rest.get(..number(name_length) as usize).map(|name| String::from_utf8_lossy(name).into_owned());
    let name = name.ok_or_else(|| io::Error::other("a damaged header on the transfer disk"))?;
    Ok(Some((name, number(length))))
}

fn padded(length: u64) -> u64 {
    length.next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_in_their_order() {
        let path = std::env::temp_dir().join(format!("hoistway-transfer-{}", std::process::id()));
        let mut disk = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        disk.set_len(1 << 20).expect("room");
        let files = [("first", vec![1u8; 700]), ("empty", Vec::new()), ("third/of", vec![3; 512])];
        for (name, bytes) in &files {
            append(&mut disk, name, bytes).expect("there is room");
        }
        let mut found = Vec::new();
        let outcome = receive(&path, |name, bytes| {
            found.push((name.to_owned(), bytes.to_vec()));
            Ok(())
        });
        outcome.expect("the list is complete");
        let expected: Vec<_> = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        assert_eq!(found, expected);
        assert!(append(&mut disk, &"x".repeat(500), &[]).is_err());
        std::fs::remove_file(path).expect("it exists");
    }
}
