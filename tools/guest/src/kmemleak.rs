//! The kernel's own search for memory that nothing refers to any more (kmemleak).

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::{Outcome, system};

const FILE: &str = "/sys/kernel/debug/kmemleak";
/// The search does not report memory that was allocated less than 5 s ago.
const AGE: Duration = Duration::from_secs(6);
/// The objects in a report at most.
const OBJECTS_MAX: usize = 8;

/// Returns true if the kernel has the search.
pub fn is_present() -> bool {
    Path::new(FILE).exists()
}

/// Searches the memory. Returns the objects that were found, each with the place of its allocation;
/// an empty text if there are none.
pub fn search() -> Outcome<String> {
    thread::sleep(AGE);
    // An object whose contents changed since the search before is left out, so the first search
    // finds nothing.
    system::write(FILE, "scan")?;
    thread::sleep(AGE);
    system::write(FILE, "scan")?;
    Ok(first_objects(&system::read(FILE)?))
}

/// The first objects of the list, with the number of all.
fn first_objects(text: &str) -> String {
    const HEAD: &str = "unreferenced object";
    let total = text.lines().filter(|line| line.starts_with(HEAD)).count();
    if total == 0 {
        return String::new();
    }
    let mut shown = 0;
    let lines = text.lines().take_while(|line| {
        shown += usize::from(line.starts_with(HEAD));
        shown <= OBJECTS_MAX
    });
    let lines: Vec<&str> = lines.collect();
    format!("{total} unreferenced objects\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_objects_is_cut_and_an_empty_one_is_no_report() {
        assert_eq!(first_objects(""), "");
        let object = "unreferenced object 0xff (size 64):\n  comm \"init\", pid 1\n  backtrace:\n    f+0x1/0x2 [m]\n";
        let text = first_objects(&object.repeat(20));
        assert!(text.starts_with("20 unreferenced objects\nunreferenced object 0xff"), "{text}");
        assert_eq!(text.lines().count(), 1 + 4 * OBJECTS_MAX);
    }
}
