//! docs/hosts.md agrees with the code.

use hoistway_sim::HostConfig;

#[test]
fn docs_hosts_md_has_the_table_of_all_settings() {
    let page = include_str!("../../../../docs/hosts.md");
    let table = HostConfig::keys_markdown();
    assert!(page.contains(&table), "the table of docs/hosts.md should be:\n{table}");
}

#[test]
fn the_example_in_docs_hosts_md_is_valid() {
    let page = include_str!("../../../../docs/hosts.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let host = HostConfig::from_toml(example, "mine.toml").expect("a valid host");
    assert_eq!((host.page_cache_mib, host.queue.clock.hz, host.read_ahead_kib), (460, 1000, 512));
}
