//! Connected clients and open devices during a reload.

use hoistway_nbd::wire::Command;

use super::world::{MS, World, config, user};
use crate::{Server, Settings};
use hoistway_blockdev::DeviceId;
use hoistway_reactor::{Options, Threads};

const TENANTS: &str = "[[tenant]]\nname = \"a\"\nuid = 1\n[[tenant]]\nname = \"b\"\nuid = 2\n";

fn export(more: &str, tenants: &str) -> String {
    format!(
        "[[device]]\nname = \"d\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"d\"\n{more}\n{tenants}"
    )
}

#[test]
fn a_tenant_that_loses_its_export_is_disconnected_and_others_are_not() {
    let mut world = World::of(&export("tenants = [\"a\", \"b\"]", TENANTS));
    let mut first = world.join("x", user(1)).expect("an admitted client");
    let mut second = world.join("x", user(2)).expect("an admitted client");
    world.reload(&export("tenants = [\"b\"]", TENANTS)).expect("a valid configuration");
    world.pass(10 * MS);
    assert!(!world.is_open(first.link), "its tenant was removed from the export");
    assert!(world.join("x", user(1)).is_none());
    let request = World::request(&mut second, Command::Read, 0, 512, &[]);
    world.write(second.link, &request);
    world.await_replies(&mut second, 1);
    assert!(second.replies[0].result.is_ok());
    world.receive(&mut first);
    assert!(first.replies.is_empty());
}

#[test]
fn a_client_whose_new_tenant_may_not_use_the_export_is_disconnected() {
    let mut world = World::of(&export("tenants = [\"a\"]", TENANTS));
    let first = world.join("x", user(1)).expect("an admitted client");
    let swapped = TENANTS.replace("uid = 1", "uid = 9");
    world.reload(&export("tenants = [\"a\"]", &swapped)).expect("a valid configuration");
    world.pass(10 * MS);
    assert!(!world.is_open(first.link), "the client matches no rule now");
}

#[test]
fn a_client_that_stays_admitted_keeps_its_tenant() {
    let mut world = World::of(&export("", TENANTS));
    let client = world.join("x", user(1)).expect("an admitted client");
    let swapped = TENANTS.replace("uid = 1", "uid = 9");
    world.reload(&export("description = \"a line\"", &swapped)).expect("a valid configuration");
    world.pass(10 * MS);
    assert!(world.is_open(client.link));
    let tenants: Vec<_> = world
        .server
        .connections
        .iter()
        .map(|(_, client)| client.client().and_then(|client| client.membership.tenant()).map(str::to_owned))
        .collect();
    assert_eq!(tenants, [Some("a".to_owned())]);
}

/// Creates a server over real files, without listening sockets.
fn over_files(text: &str) -> Server<Threads> {
    let engine = Threads::new(&Options::default()).expect("an engine");
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
fn an_export_may_become_read_only_and_writable_again_if_its_file_is_open_for_writing() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("d", &disk, "", false));
    let read_only = |server: &Server<Threads>| server.state.exports[0].export.abilities.read_only;
    server.reload(config(&device("d", &disk, "", true)), None).expect("a file open for writing");
    assert!(read_only(&server));
    server.reload(config(&device("d", &disk, "", false)), None).expect("the file is open for writing");
    assert!(!read_only(&server));
}

#[test]
fn a_file_that_is_open_for_reading_cannot_become_writable() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("d", &disk, "", true));
    let error = server.reload(config(&device("d", &disk, "", false)), None).expect_err("it is open for reading only");
    assert!(error.to_string().contains("open for reading only"), "{error}");
}

#[test]
fn a_device_may_be_renamed_and_be_attached_again_under_any_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, other) = (file(&folder, "disk"), file(&folder, "other"));
    let mut server = over_files(&device("a", &disk, "", false));
    server.reload(config(&device("b", &disk, "depth = 3", false)), None).expect("it is the same file");
    assert_eq!((server.device_names(), server.state.exports[0].device), (vec!["b"], DeviceId(0)));
    assert_eq!(server.state.devices[0].scheduler().depth(), 3);
    // Detached, and attached again under the old name.
    server.reload(config(&device("c", &other, "", false)), None).expect("another file");
    assert_eq!(server.state.exports[0].device, DeviceId(1));
    std::os::unix::fs::symlink(&disk, folder.path().join("link")).expect("a link");
    let link = folder.path().join("link").display().to_string();
    server.reload(config(&device("a", &link, "", false)), None).expect("the same file by another path");
    assert_eq!((server.state.exports[0].device, server.state.devices.len()), (DeviceId(0), 2));
    // Names of detached devices are free.
    let third = file(&folder, "third");
    server.reload(config(&device("c", &third, "", false)), None).expect("a third file");
    server.reload(config(&device("a", &other, "", false)), None).expect("the second one again");
    assert_eq!((server.state.device_named("a"), server.state.device_named("c")), (Some(DeviceId(1)), None));
}

#[test]
fn a_device_that_is_attached_again_with_other_options_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = file(&folder, "disk");
    let mut server = over_files(&device("a", &disk, "", false));
    let error =
        server.reload(config(&device("b", &disk, "direct = false", false)), None).expect_err("the file is open");
    assert!(error.to_string().contains("still open for the device `a`, with another `direct`"), "{error}");
    assert_eq!(server.device_names(), ["a"], "nothing has changed");
}

#[test]
fn a_device_opened_for_a_refused_configuration_is_found_by_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, other) = (file(&folder, "disk"), file(&folder, "other"));
    let first = device("a", &disk, "", false);
    let mut server = over_files(&first);
    let second =
        format!("{first}[[device]]\nname = \"b\"\nbackend = \"{other}\"\n[[export]]\nname = \"y\"\ndevice = \"b\"\n");
    let long = config(&format!("{second}size = \"64K\"\n"));
    // The file is truncated before the export is created.
    std::fs::File::options().write(true).open(&other).expect("a file").set_len(4096).expect("a truncated file");
    server.reload(long, None).expect_err("the export is longer than the file");
    assert_eq!(server.state.device_named("b"), None);
    server.reload(config(&second), None).expect("the server holds the lock itself");
    assert_eq!((server.state.device_named("b"), server.state.devices.len()), (Some(DeviceId(1)), 2));
}
