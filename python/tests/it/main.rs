//! The stubs of the extension module name what it exports.

use std::collections::BTreeSet;

/// The names of the last parts of the paths that the module exports.
fn exported(source: &str) -> BTreeSet<String> {
    let uses = source.split("#[pymodule_export]").skip(1).filter_map(|rest| rest.split(';').next());
    let names = uses.flat_map(|path| {
        let last = path.rsplit("::").next().unwrap_or_default();
        let names = path.split_once('{').map_or(last, |(_, names)| names.trim_end_matches('}'));
        names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect::<Vec<_>>()
    });
    names.collect()
}

/// The classes and functions that stubs declare at their top level.
fn declared(stubs: &str) -> BTreeSet<String> {
    let named = |line: &str| {
        let rest = line.strip_prefix("class ").or_else(|| line.strip_prefix("def "))?;
        rest.split(['(', ':']).next().map(str::to_owned)
    };
    stubs.lines().filter_map(named).collect()
}

#[test]
fn stubs_declare_every_class_and_function() {
    let module = exported(include_str!("../../src/lib.rs"));
    assert!(module.contains("compare"), "{module:?}");
    assert_eq!(module, declared(include_str!("../../hoistway/_hoistway.pyi")));
}
