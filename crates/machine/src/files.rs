//! Reading the small files of sysfs and procfs, and the order of device names.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The largest part of a file that is read, in bytes: attributes are a page, `mountinfo` of a
/// machine with thousands of mounts is larger.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a text file and trims blanks and NUL bytes; invalid UTF-8 is replaced. `None` if the file
/// cannot be read.
pub fn read_text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_bytes(path)?).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

/// Reads a file, up to 16 MiB. `None` if the file cannot be read.
pub fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads a text file as [`read_text`] does; `None` if it is empty.
pub fn read_nonempty(path: &Path) -> Option<String> {
    read_text(path).filter(|text| !text.is_empty())
}

/// Reads a file that holds one number.
pub fn read_number<N: std::str::FromStr>(path: &Path) -> Option<N> {
    read_text(path)?.parse().ok()
}

/// Reads a file that holds `0` or `1`.
pub fn read_switch(path: &Path) -> Option<bool> {
    match read_text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Lists the names in a directory in natural order: `sd2` before `sd10`. Empty if the directory
/// cannot be read.
pub fn list_names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>());
    let mut names = entries.unwrap_or_default();
    names.sort_by(|one, other| compare_names(one, other));
    names
}

/// Compares names by their words and numbers: `sda2` comes before `sda10`.
pub fn compare_names(one: &str, other: &str) -> Ordering {
    let (one_parts, other_parts) = (name_parts(one), name_parts(other));
    one_parts.cmp(&other_parts).then_with(|| one.cmp(other))
}

/// A part of a name: its prefix, the count of disk letters after the prefix, the letters, and the
/// number that follows plus one.
type NamePart = (String, usize, String, u64);

/// Splits a name into parts. `sda` comes before `sda1`, and `sdaa` after `sdz`.
fn name_parts(name: &str) -> Vec<NamePart> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after_word) = rest.split_at(word_end);
        let digits_end = after_word.find(|c: char| !c.is_ascii_digit()).unwrap_or(after_word.len());
        let (digits, after_digits) = after_word.split_at(digits_end);
        // No number sorts before any number; a number that is too large sorts last.
        let number =
            if digits.is_empty() { 0 } else { digits.parse::<u64>().unwrap_or(u64::MAX - 1).saturating_add(1) };
        // Disks are lettered like the columns of a spreadsheet: two letters come after one.
        let lettered = ["sd", "vd", "xvd"].iter().find_map(|prefix| Some((*prefix, word.strip_prefix(prefix)?)));
        let (prefix, letters) = lettered.unwrap_or((word, ""));
        parts.push((prefix.to_owned(), letters.len(), letters.to_owned(), number));
        rest = after_digits;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = ["sdaa", "sda10", "sdb", "sda2", "sda", "nvme0n1p2", "nvme0n1", "dm-10", "dm-9", "sdz"];
        names.sort_by(|one, other| compare_names(one, other));
        assert_eq!(names, ["dm-9", "dm-10", "nvme0n1", "nvme0n1p2", "sda", "sda2", "sda10", "sdb", "sdz", "sdaa"]);
    }
}
