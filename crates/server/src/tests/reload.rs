//! What a new configuration does to those who are there.

use hoistway_nbd::wire::Command;

use super::world::{MS, World, config, user};
use crate::{Server, Settings};
use hoistway_reactor::{Options, Threads};

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

/// A server over real files, without anybody who could reach it.
fn over_files(text: &str) -> Server<Threads> {
    let engine = Threads::new(&Options::default()).expect("it needs nothing");
    Server::new(engine, &config(text), Settings::default()).expect("a server")
}

fn file(folder: &tempfile::TempDir, name: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, vec![0; 65536]).expect("a file");
    path.display().to_string()
}

fn device(name: &str, path: &str, more: &str, read_only: bool) -> String {
    format!(
        "[[device]]\nname = \"{name}\"\nbackend = \"{path}\"\n{more}\n[[export]]\nname = \"x\"\ndevice = \"{name}\"\nread_only = {read_only}\n"
    )
}

#[test]
fn an_export_may_become_read_only_and_back_where_its_file_is_open_for_writing() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("d", &disk, "", false));
    let read_only = |server: &Server<Threads>| server.state.exports[0].export.abilities.read_only;
    server.reload(config(&device("d", &disk, "", true)), None).expect("what can be written can be read");
    assert!(read_only(&server));
    server.reload(config(&device("d", &disk, "", false)), None).expect("it was open for writing all the time");
    assert!(!read_only(&server));
}

#[test]
fn a_file_that_is_open_for_reading_cannot_be_written_to_and_the_cause_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("d", &disk, "", true));
    let error = server.reload(config(&device("d", &disk, "", false)), None).expect_err("it is open for reading only");
    assert!(error.to_string().contains("open for reading only"), "{error}");
}

#[test]
fn a_device_may_be_called_otherwise_and_come_back_by_any_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, other) = (file(&folder, "disk"), file(&folder, "other"));
    let mut server = over_files(&device("a", &disk, "", false));
    server.reload(config(&device("b", &disk, "depth = 3", false)), None).expect("it is the same file");
    assert_eq!((server.device_names(), server.state.exports[0].device), (vec!["b"], 0));
    assert_eq!(server.state.devices[0].scheduler().depth(), 3);
    // Away, and back by the old name.
    server.reload(config(&device("c", &other, "", false)), None).expect("another file");
    assert_eq!(server.state.exports[0].device, 1);
    std::os::unix::fs::symlink(&disk, folder.path().join("link")).expect("a link");
    let link = folder.path().join("link").display().to_string();
    server.reload(config(&device("a", &link, "", false)), None).expect("it is the same file by whatever path");
    assert_eq!((server.state.exports[0].device, server.state.devices.len()), (0, 2));
    // Names of idle devices are free.
    let third = file(&folder, "third");
    server.reload(config(&device("c", &third, "", false)), None).expect("a third file");
    server.reload(config(&device("a", &other, "", false)), None).expect("the second one again");
    assert_eq!((server.state.place_of("a"), server.state.place_of("c")), (Some(1), None));
}

#[test]
fn a_device_that_comes_back_as_something_else_is_refused_with_the_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("a", &disk, "", false));
    let error = server.reload(config(&device("b", &disk, "direct = false", false)), None).expect_err("it is open");
    assert!(error.to_string().contains("still open for the device `a`, with another `direct`"), "{error}");
    assert_eq!(server.device_names(), ["a"], "all is as it was");
}

#[test]
fn a_device_that_was_opened_for_a_configuration_that_fails_is_there_for_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, other) = (file(&folder, "disk"), file(&folder, "other"));
    let first = device("a", &disk, "", false);
    let mut server = over_files(&first);
    let second =
        format!("{first}[[device]]\nname = \"b\"\nbackend = \"{other}\"\n[[export]]\nname = \"y\"\ndevice = \"b\"\n");
    let long = config(&format!("{second}size = \"64K\"\n"));
    // The file is shorter by the time that the export is made.
    std::fs::File::options().write(true).open(&other).expect("it is there").set_len(4096).expect("it is cut");
    server.reload(long, None).expect_err("the export is longer than the file");
    assert_eq!(server.state.place_of("b"), None);
    server.reload(config(&second), None).expect("its lock is our own");
    assert_eq!((server.state.place_of("b"), server.state.devices.len()), (Some(1), 2));
}
