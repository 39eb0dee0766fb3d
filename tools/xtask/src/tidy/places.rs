//! Words that do not belong in the repository: paths of one machine, hosts of registries, numbers
//! of issues.

use hoistway_workspace::repository::File;

/// Finds what does not belong in the repository, which speaks of the project alone and of no
/// machine. The words are put together from parts so that this file does not contain them.
pub fn findings(file: &File) -> Vec<String> {
    let is_data = file.path.contains("testdata/")
        || file.path.starts_with("fuzz/corpus-seed/")
        || file.path.ends_with("Cargo.lock");
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let line_number = index + 1;
        let mut add = |what: &str| found.push(format!("{}:{line_number}: {what}", file.path));
        for path in [concat!("/", "work/"), concat!("/tmp/", "target"), concat!("/", "root/"), concat!("/", "home/")] {
            if line.contains(path) {
                add(&format!("{path} is a path on one machine"));
            }
        }
        if is_data {
            continue;
        }
        let lower = line.to_lowercase();
        for word in lower.split(|c: char| !c.is_alphanumeric()) {
            let singular = word.strip_suffix('s').unwrap_or(word);
            if [
                concat!("age", "nt"),
                concat!("pro", "mpt"),
                concat!("ll", "m"),
                concat!("chat", "gpt"),
                concat!("clau", "de"),
            ]
            .contains(&singular)
            {
                add(&format!("the word {word:?}"));
            }
        }
        for owner in ["this", "my", "our", "previous", "next", "last", "coding"] {
            if lower.contains(&format!("{owner} {}", concat!("sess", "ion"))) {
                add(&format!("{owner} {}", concat!("sess", "ion")));
            }
        }
        for host in [
            concat!("artifact", "ory"),
            concat!("index", "-url"),
            concat!("replace", "-with"),
            concat!("prox", "y.golang"),
        ] {
            // A source of crates in a directory has no host.
            let is_directory = host.starts_with("replace") && lower.contains("directory = ");
            if lower.contains(host) && !is_directory {
                add(&format!("{host:?} names a registry"));
            }
        }
        // Immediate operands of ARM's instructions begin with a number sign.
        if !file.path.starts_with("tools/kernel/src/asm/")
            && ["rs", "md", "toml", "txt", "py", "sh"].iter().any(|kind| file.path.ends_with(&format!(".{kind}")))
            && let Some(reference) = issue_reference(line)
        {
            add(&format!("{reference} refers to an issue that the reader cannot see"));
        }
    }
    found
}

/// Finds a `#` with one to five digits that stands alone, as issues are written. Colours have
/// quotes before them.
fn issue_reference(line: &str) -> Option<&str> {
    for (at, _) in line.match_indices('#') {
        let before = line[..at].chars().next_back();
        let digits = line[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let after = line[at + 1 + digits..].chars().next();
        let stands_alone =
            before.is_none_or(|c| c.is_whitespace() || c == '(') && after.is_none_or(|c| !c.is_alphanumeric());
        if (1..=5).contains(&digits) && stands_alone {
            return Some(&line[at..=at + digits]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn words_that_do_not_belong_are_found_and_their_like_are_not() {
        let bad = [
            concat!("an age", "nt"),
            concat!("the pro", "mpts"),
            concat!("see /", "work/x"),
            concat!("in this sess", "ion"),
            concat!("mends #", "12."),
        ];
        for text in bad {
            assert_eq!(findings(&file("a.md", text)).len(), 1, "{text}");
        }
        for text in ["a reagent", "promptly", "an NBD session", "a colour \"#123\"", "x#12", "&#8217;", "network/x"] {
            assert_eq!(findings(&file("a.md", text)), [""; 0], "{text}");
        }
    }
}
