//! The modules that are installed for the running kernel.

use crate::files::read_text;
use crate::root::Root;

/// Returns true if a module is installed for the running kernel, or built into it.
pub(crate) fn is_module_installed(root: &Root, module: &str) -> bool {
    let release = read_text(&root.path("/proc/sys/kernel/osrelease")).filter(|release| !release.is_empty());
    let Some(release) = release else { return false };
    let directory = root.path("/lib/modules").join(release);
    let lists = ["modules.dep", "modules.builtin"].iter().filter_map(|name| read_text(&directory.join(name)));
    // A line starts with the path of the module: kernel/block/bfq.ko.xz: ...
    let names_module = |line: &str| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        file.split(".ko").next() == Some(module)
    };
    lists.into_iter().any(|text| text.lines().any(names_module))
}
