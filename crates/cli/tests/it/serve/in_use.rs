//! Files and block devices that are in use: they are not opened for writing, with the reason and
//! the option that overrides. The tests need root, loop devices and mkfs.ext4; otherwise they are
//! skipped with a message.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hoistway_trace::Rwbs;

use super::client::Client;
use super::replay::write_trace;
use super::server::Server;
use crate::common::{Folder, PATIENCE, Ran, eventually, run};

const IMAGE_BYTES: u64 = 64 << 20;

/// A loop device over the file `image` of its own folder.
struct Loop {
    folder: Folder,
    device: String,
    /// Partitions, swap and mounts that its end removes.
    partitions: Vec<u32>,
    swaps: Vec<String>,
    mounts: Vec<PathBuf>,
}

/// Runs a program with arguments; `Err` has the reason of a failure.
fn call(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{program} {args:?}: {}", text(&output.stderr))),
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: {}", why.trim());
    None
}

impl Loop {
    /// Attaches a device, or says why that is not possible here.
    fn attach() -> Option<Loop> {
        if !rustix::process::geteuid().is_root() {
            return skipped("loop devices need root");
        }
        let folder = Folder::new();
        let image = std::fs::File::create(folder.path("image")).expect("the folder can be written");
        image.set_len(IMAGE_BYTES).expect("there is room");
        match call("losetup", &["-f", "--show", &folder.name("image")]) {
            Ok(device) => {
                let (partitions, swaps, mounts) = (Vec::new(), Vec::new(), Vec::new());
                Some(Loop { folder, device, partitions, swaps, mounts })
            }
            Err(error) => skipped(&error),
        }
    }

    /// Attaches a device with a mounted ext4.
    fn mounted() -> Option<Loop> {
        let mut device = Loop::attach()?;
        let node = device.device.clone();
        device.make_file_system(&node)?;
        device.mount(&node, "mounted")?;
        Some(device)
    }

    fn make_file_system(&self, node: &str) -> Option<()> {
        call("mkfs.ext4", &["-q", node]).map(drop).or_else(|error| skipped(&error).ok_or(())).ok()
    }

    fn mount(&mut self, node: &str, name: &str) -> Option<()> {
        let at = self.folder.path(name);
        let _ = std::fs::create_dir(&at);
        if let Err(error) = call("mount", &[node, &self.folder.name(name)]) {
            return skipped(&error);
        }
        self.mounts.push(at);
        Some(())
    }

    fn unmount(&mut self) {
        for at in self.mounts.drain(..) {
            eventually(|| call("umount", &[at.to_str().expect("UTF-8")])).expect("nothing has it open");
        }
    }

    /// Adds a partition of 16 MiB, and returns its node.
    fn add_partition(&mut self, number: u32) -> Option<String> {
        let (first, sectors) = (2048 + (number - 1) * 32_768, 32_768);
        let args = [self.device.clone(), number.to_string(), first.to_string(), sectors.to_string()];
        if let Err(error) = call("addpart", &args.each_ref().map(String::as_str)) {
            return skipped(&error);
        }
        self.partitions.push(number);
        let node = format!("{}p{number}", self.device);
        if !Path::new(&node).exists() {
            return skipped(&format!("{node} does not appear: there is no devtmpfs"));
        }
        Some(node)
    }

    /// Serves a path until `true` has run.
    fn serve(&self, export: &str, more: &[&str]) -> Ran {
        let socket = self.folder.name("s");
        run(&[&["serve", "--export", export, "--socket", &socket, "--run", "true"], more].concat())
    }

    #[track_caller]
    fn refuses(&self, export: &str, parts: &[&str]) {
        self.serve(export, &[]).refused(1, &[&["--force-in-use", "writing to it would destroy data"], parts].concat());
    }

    #[track_caller]
    fn serves(&self, export: &str, more: &[&str]) -> String {
        let ran = self.serve(export, more);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.err
    }

    /// Serves a path as soon as it is free, and returns the log. A process in another namespace, of
    /// another test for example, may have a copy of each mount until the process ends.
    fn serves_eventually(&self, export: &str) -> String {
        let log = eventually(|| match self.serve(export, &[]) {
            Ran { code: Some(0), err, .. } => Ok(err),
            Ran { err, .. } => Err(err),
        });
        log.unwrap_or_else(|error| panic!("{export} is not free: {error}"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        for at in &self.mounts {
            let _ = Command::new("umount").arg(at).status();
        }
        for swap in &self.swaps {
            let _ = Command::new("swapoff").arg(swap).status();
        }
        for number in &self.partitions {
            let _ = eventually(|| call("delpart", &[&self.device, &number.to_string()]));
        }
        let _ = call("losetup", &["-d", &self.device]);
    }
}

#[test]
fn a_mounted_device_is_served_for_reading_only() {
    let Some(mut device) = Loop::mounted() else { return };
    let export = format!("={}", device.device);
    let at = device.folder.name("mounted");
    device.refuses(&export, &[&format!("{} is mounted at {at} (ext4)", device.device), &format!("unmount {at}")]);
    device.serves(&format!("{export},read-only"), &[]);
    // The log names the use for both overrides.
    for (export, more) in [(export.clone(), &["--force-in-use"][..]), (format!("{export},force-in-use"), &[])] {
        let log = device.serves(&export, more);
        assert!(log.contains("is mounted at") && log.contains("opened for writing all the same"), "{log}");
    }
    let config = format!(
        "[[device]]\nname = \"a\"\nbackend = \"file:{}\"\nforce_in_use = true\n[[export]]\nname = \"\"\n",
        device.device
    );
    let config = device.folder.file("serve.toml", config);
    let socket = device.folder.name("s");
    assert_eq!(run(&["serve", "--config", &config, "--socket", &socket, "--run", "true"]).code, Some(0));
    let calibrated = run(&["serve", "--export", &export, "--calibrate"]);
    assert_eq!(calibrated.code, Some(0), "a calibration only reads: {}", calibrated.err);
    device.unmount();
    device.serves_eventually(&export);
}

#[test]
fn a_served_device_cannot_be_mounted() {
    let Some(device) = Loop::attach() else { return };
    if device.make_file_system(&device.device).is_none() {
        return;
    }
    let server = Server::start(&["--export", &format!("={}", device.device)]);
    std::fs::create_dir(device.folder.path("m")).expect("it is ours");
    let refused = call("mount", &[&device.device, &device.folder.name("m")]);
    if refused.is_ok() {
        let _ = call("umount", &[&device.folder.name("m")]);
        panic!("a served device was mounted");
    }
    device.refuses(&format!("={}", device.device), &["exclusive use", "(hoistway)"]);
    assert_eq!(server.end().0, Some(0));
    // Another program, udev for example, may have the device open for a moment.
    let at = device.folder.name("m");
    eventually(|| call("mount", &[&device.device, &at])).expect("the server has released it");
    eventually(|| call("umount", &[&at])).expect("nothing has it open");
}

#[test]
fn an_image_behind_a_loop_device_is_refused() {
    let Some(mut device) = Loop::mounted() else { return };
    let image = format!("={}", device.folder.name("image"));
    let behind = format!("it is behind the loop device {}", device.device);
    let mounted = format!("{behind}, which is mounted at {}", device.folder.name("mounted"));
    device.refuses(&image, &[&mounted, &format!("losetup -d {}", device.device)]);
    std::fs::hard_link(device.folder.path("image"), device.folder.path("other")).expect("a link");
    device.refuses(&format!("={}", device.folder.name("other")), &[&mounted]);
    device.serves(&format!("{image},read-only"), &[]);
    device.unmount();
    device.refuses(&image, &[&behind]);
    call("losetup", &["-d", &device.device]).expect("nothing has it open");
    // The kernel detaches the device when its last user has closed it.
    let log = device.serves_eventually(&image);
    assert!(!log.contains("loop device"), "{log}");
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused_and_its_other_partition_is_not() {
    let Some(mut device) = Loop::attach() else { return };
    let (Some(first), Some(second)) = (device.add_partition(1), device.add_partition(2)) else { return };
    if device.make_file_system(&first).is_none() || device.mount(&first, "first").is_none() {
        return;
    }
    let at = device.folder.name("first");
    let mounted = format!("{first} is mounted at {at} (ext4)");
    device.refuses(&format!("={}", device.device), &[&mounted]);
    device.refuses(&format!("={first}"), &[&mounted]);
    device.refuses(&format!("={}", device.folder.name("image")), &["which is mounted at"]);
    device.serves(&format!("={second}"), &[]);
}

#[test]
fn swap_space_is_refused() {
    let Some(mut device) = Loop::attach() else { return };
    let node = device.device.clone();
    for args in [&["mkswap", &node][..], &["swapon", &node]] {
        if let Err(error) = call(args[0], &args[1..]) {
            return skipped(&error).unwrap_or_default();
        }
    }
    device.swaps.push(node.clone());
    device.refuses(&format!("={node}"), &[&format!("{node} is swap space"), &format!("swapoff {node}")]);
}

/// A process in a mount namespace of its own; killed on drop.
struct Namespace(Child);

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_mount_in_another_namespace_is_found() {
    let Some(device) = Loop::attach() else { return };
    if device.make_file_system(&device.device).is_none() {
        return;
    }
    let (at, ready) = (device.folder.name("hidden"), device.folder.path("ready"));
    std::fs::create_dir(&at).expect("it is ours");
    let script = "mount --make-rprivate / && mount \"$0\" \"$1\" && touch \"$2\" && exec sleep 600";
    let started = Command::new("unshare")
        .args(["-m", "sh", "-c", script, &device.device, &at, ready.to_str().expect("UTF-8")])
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else { return skipped("unshare is not installed").unwrap_or_default() };
    let mut namespace = Namespace(child);
    let end = Instant::now() + PATIENCE;
    while !ready.exists() {
        if namespace.0.try_wait().expect("it can be waited for").is_some() {
            return skipped("no mount namespace can be made").unwrap_or_default();
        }
        assert!(Instant::now() < end, "the mount in another namespace does not appear");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mounted = format!("{} is mounted at {at} (ext4) for process {}", device.device, namespace.0.id());
    device.refuses(&format!("={}", device.device), &[&mounted]);
    drop(namespace);
}

#[test]
fn a_replay_with_writes_is_refused_on_a_mounted_device() {
    let Some(device) = Loop::mounted() else { return };
    let trace = device.folder.path("trace");
    // The last 4 KiB of the image, which the file system does not use.
    write_trace(&trace, &[(Rwbs::READ, 0, 4096), (Rwbs::WRITE, IMAGE_BYTES / 512 - 8, 4096)]);
    let trace = trace.to_str().expect("UTF-8");
    let replay = |more: &[&str]| run(&[&["trace", "replay", trace, "--on", &device.device], more].concat());
    replay(&["--write"]).refused(1, &["is mounted at", "--force-in-use"]);
    replay(&["--force-in-use"]).refused(2, &["--write"]);
    assert_eq!(replay(&["--reads-only"]).code, Some(0));
    let forced = replay(&["--write", "--force-in-use"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
}

#[test]
fn archives_traces_and_recordings_do_not_overwrite_a_device_in_use() {
    let Some(device) = Loop::mounted() else { return };
    let trace = device.folder.path("trace");
    write_trace(&trace, &[(Rwbs::READ, 0, 4096)]);
    let trace = trace.to_str().expect("UTF-8");
    let image = device.folder.name("image");
    let before = std::fs::read(device.folder.path("image")).expect("the image is there");
    let socket = device.folder.name("s");
    let serve =
        |more: &[&str]| run(&[&["serve", "--export", "=mem:1M", "--socket", &socket, "--run", "true"], more].concat());
    for target in [&device.device, &image] {
        run(&["trace", "convert", trace, "-o", target]).refused(1, &["destroy data"]);
        run(&["trace", "view", trace, "-o", target]).refused(1, &["destroy data"]);
        serve(&["--pid-file", target]).refused(1, &["destroy data"]);
    }
    // A recording adds a suffix to the name.
    std::fs::hard_link(&image, device.folder.path("r.blktrace.0")).expect("a link");
    serve(&["--record", &device.folder.name("r")]).refused(1, &["destroy data"]);
    let cpus = ["trace", "convert", trace, "--as", "blktrace-cpus", "-o", &device.folder.name("r")];
    run(&cpus).refused(1, &["r", "destroy data"]);
    let tar = ["tar", "-cf", &device.device, trace];
    run(&tar).refused(2, &["is mounted at", "--force-in-use"]);
    let after = std::fs::read(device.folder.path("image")).expect("the image is there");
    assert!(before == after, "the device was written to");
}

#[test]
fn a_reload_does_not_open_a_device_in_use() {
    let Some(device) = Loop::mounted() else { return };
    let config = |more: &str| {
        format!("[[device]]\nname = \"m\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"\"\ndevice = \"m\"\n{more}")
    };
    let folder = Folder::new();
    folder.file("serve.toml", config(""));
    let server = Server::start_in(folder, &["--config", "FOLDER/serve.toml"]);
    let more = format!(
        "[[device]]\nname = \"disk\"\nbackend = \"file:{}\"\n[[export]]\nname = \"disk\"\ndevice = \"disk\"\n",
        device.device
    );
    server.folder.file("serve.toml", config(&more));
    server.signal(rustix::process::Signal::HUP);
    server.await_log("the configuration stays as it was");
    Client::of(&server.socket(), "").read(0, 512).expect("the old configuration stays");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the configuration stays as it was: device disk: ") && log.contains("is mounted at"), "{log}");
}
