//! What a new configuration does to those who are there.

use hoistway_nbd::wire::Command;

use super::world::{MS, World, user};

const TENANTS: &str = "[[tenant]]\nname = \"a\"\nuid = 1\n[[tenant]]\nname = \"b\"\nuid = 2\n";

fn export(more: &str, tenants: &str) -> String {
    format!(
        "[[device]]\nname = \"d\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n{more}\n{tenants}"
    )
}

#[test]
fn a_tenant_that_may_not_have_an_export_any_more_is_cut_off_and_others_are_not() {
    let mut world = World::of(&export("tenants = [\"a\", \"b\"]", TENANTS));
    let mut first = world.enter("x", user(1)).expect("it may");
    let mut second = world.enter("x", user(2)).expect("it may");
    world.reload(&export("tenants = [\"b\"]", TENANTS)).expect("it can be taken");
    world.pass(10 * MS);
    assert!(!world.is_open(first.link), "its tenant was taken out");
    assert!(world.enter("x", user(1)).is_none());
    let ask = World::request(&mut second, Command::Read, 0, 512, &[]);
    world.write(second.link, &ask);
    world.await_answers(&mut second, 1);
    assert!(second.answers[0].result.is_ok());
    world.hear(&mut first);
    assert!(first.answers.is_empty());
}

#[test]
fn rules_that_make_a_client_another_tenant_cut_it_off_where_that_one_may_not_be() {
    let mut world = World::of(&export("tenants = [\"a\"]", TENANTS));
    let first = world.enter("x", user(1)).expect("it may");
    let swapped = TENANTS.replace("uid = 1", "uid = 9");
    world.reload(&export("tenants = [\"a\"]", &swapped)).expect("it can be taken");
    world.pass(10 * MS);
    assert!(!world.is_open(first.link), "it is nobody's by now");
}

#[test]
fn a_client_that_may_stay_keeps_the_tenant_that_it_was() {
    let mut world = World::of(&export("", TENANTS));
    let client = world.enter("x", user(1)).expect("it may");
    let swapped = TENANTS.replace("uid = 1", "uid = 9");
    world.reload(&export("description = \"a line\"", &swapped)).expect("it can be taken");
    world.pass(10 * MS);
    assert!(world.is_open(client.link));
    let tenants: Vec<_> = world.server.table.iter().map(|client| client.tenant().map(str::to_owned)).collect();
    assert_eq!(tenants, [Some("a".to_owned())]);
}
