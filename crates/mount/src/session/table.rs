//! What is mounted where, as `/proc/self/mountinfo` has it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: PathBuf,
    pub(super) kind: String,
    pub(super) from: String,
}

/// The mount that is seen at exactly this place: the last one of those made there.
pub(super) fn mounted_at(path: &Path) -> Option<Line> {
    // A table that cannot be read says nothing against a mount.
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(parse).rfind(|line| line.at == path)
}

/// `36 35 98:0 /root /place options [optional ...] - type source options`, with spaces in names as `\040`.
fn parse(line: &[u8]) -> Option<Line> {
    let mut words = line.split(|byte| *byte == b' ');
    let at = PathBuf::from(OsString::from_vec(plain(words.nth(4)?)));
    let mut words = words.skip_while(|word| *word != b"-").skip(1);
    let text = |word: &[u8]| String::from_utf8_lossy(&plain(word)).into_owned();
    Some(Line { at, kind: text(words.next()?), from: text(words.next()?) })
}

fn plain(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *byte == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_and_what() {
        let line = parse(
            br"95 29 0:44 / /mnt/two\040words rw,nosuid shared:5 master:1 - fuse.hoistway hoi\134st rw,user_id=0",
        )
        .expect("a line");
        assert_eq!(line, Line { at: "/mnt/two words".into(), kind: "fuse.hoistway".into(), from: r"hoi\st".into() });
        assert_eq!(parse(b"95 29 0:44 / /mnt rw"), None);
    }

    #[test]
    fn proc_is_mounted() {
        assert_eq!(mounted_at(Path::new("/proc")).map(|line| line.kind), Some("proc".into()));
        assert_eq!(mounted_at(Path::new("/proc/self")), None);
    }
}
