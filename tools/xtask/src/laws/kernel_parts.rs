//! The order of the parts of the kernel module: a part is a C file with the header of its name, and
//! uses only parts whose headers it includes. Parts must not include one another in a cycle.

use std::collections::BTreeMap;

use crate::graph;
use hoistway_workspace::repository::{self, File};

/// Finds dependency cycles of parts.
pub fn violations() -> anyhow::Result<Vec<String>> {
    Ok(circles(&repository::text_files()?))
}

fn circles(files: &[File]) -> Vec<String> {
    let mut arrows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        let name = file.path.strip_prefix("kernel/").unwrap_or_default();
        let Some(part) = name.strip_suffix(".c").or(name.strip_suffix(".h")) else { continue };
        let included = file.text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix(".h\""));
        arrows.entry(part).or_default().extend(included);
    }
    let circles = graph::cycles(&arrows).into_iter();
    circles.map(|parts| format!("kernel/: these parts include one another in a cycle: {}", parts.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_c_file_and_its_header_must_not_form_a_circle() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let (a, b) = (file("kernel/a.c", "#include \"a.h\"\n#include \"b.h\""), file("kernel/b.h", "#include \"c.h\""));
        assert_eq!(circles(&[a, b, file("kernel/a.h", "#include <linux/b.h>")]), [""; 0]);
        let (a, b) = (file("kernel/a.c", "#include \"b.h\""), file("kernel/b.c", "#include \"a.h\""));
        let expected = ["kernel/: these parts include one another in a cycle: a, b"];
        assert_eq!(circles(&[a, b, file("kernel/a.h", ""), file("kernel/b.h", "")]), expected);
    }
}
