//! What a file is called in the archive: its path without what would lead out of the place where it is extracted.

/// How many bytes at the front of a path an archive leaves out: slashes, and everything up to the last `..`.
pub fn unsafe_prefix(path: &[u8]) -> usize {
    let mut ends = 0;
    let mut at = 0;
    for part in path.split_inclusive(|byte| *byte == b'/') {
        at += part.len();
        if part == b"../" || part == b".." {
            ends = at;
        }
    }
    ends + path[ends..].iter().take_while(|byte| **byte == b'/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &str) -> &str {
        &path[unsafe_prefix(path.as_bytes())..]
    }

    #[test]
    fn nothing_leads_out_of_where_it_is_extracted() {
        assert_eq!(kept("/etc/passwd"), "etc/passwd");
        assert_eq!(kept("//etc"), "etc");
        assert_eq!(kept("../../a"), "a");
        assert_eq!(kept("a/../b/c"), "b/c");
        assert_eq!(kept("a/.."), "");
        assert_eq!(kept("..//x"), "x");
        assert_eq!(kept("/../x"), "x");
    }

    #[test]
    fn what_is_harmless_is_kept() {
        for path in ["a/b", "./a", ".", "..a/b", "a../b", "a/...", "a//b"] {
            assert_eq!(kept(path), path);
        }
    }
}
