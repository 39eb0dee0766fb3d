//! `hoistway order`: its output for small trees, and other programs that read the list.

#[path = "../../../order/tests/it/common/image.rs"]
mod image;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Folder, Ran, hoistway};
use image::{Image, filefrag, skipped};

/// Runs `hoistway order` in a directory.
fn order_in(folder: &Path, args: &[&str]) -> Output {
    hoistway(&[&["order"], args].concat()).current_dir(folder).output().expect("the binary starts")
}

/// Runs `hoistway order` in a directory with a list on standard input.
fn order_list(folder: &Path, args: &[&str], list: &[u8]) -> Output {
    let mut child = hoistway(&[&["order"], args].concat())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(list).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// Creates a directory with a few files of each type.
fn tree() -> Folder {
    let folder = Folder::new();
    for directory in ["a/b", "c"] {
        fs::create_dir_all(folder.path(directory)).unwrap();
    }
    for name in ["a/b/3", "c/1", "a/2", "0"] {
        fs::write(folder.path(name), name).unwrap();
    }
    symlink("0", folder.path("link")).unwrap();
    folder
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8(output.stdout.clone()).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn set(of: &[String]) -> BTreeSet<&str> {
    of.iter().map(String::as_str).collect()
}

#[test]
fn the_names_of_find_are_printed_directories_first() {
    let folder = tree();
    let printed = lines(&order_in(&folder.path("."), &[]));
    assert_eq!(
        set(&printed),
        BTreeSet::from([".", "./0", "./a", "./a/2", "./a/b", "./a/b/3", "./c", "./c/1", "./link"])
    );
    assert_eq!(printed.len(), 9);
    let directories: BTreeSet<&str> = printed[..4].iter().map(String::as_str).collect();
    assert_eq!(directories, BTreeSet::from([".", "./a", "./a/b", "./c"]));
    let place = |name: &str| printed.iter().position(|path| path == name);
    assert!(place("./a") < place("./a/b"));
}

#[test]
fn inode_order_is_that_of_inodes_and_name_order_that_of_paths() {
    let folder = tree();
    let by_inode = lines(&order_in(&folder.path("."), &["--by", "inode", "--type", "f", "a", "c", "0"]));
    let inodes: Vec<u64> = by_inode.iter().map(|path| fs::metadata(folder.path(path)).unwrap().ino()).collect();
    assert!(inodes.len() == 4 && inodes.is_sorted(), "{by_inode:?} {inodes:?}");
    let by_name = lines(&order_in(&folder.path("."), &["--by", "name", "c", "a"]));
    assert_eq!(by_name, ["a", "a/2", "a/b", "a/b/3", "c", "c/1"]);
}

#[test]
fn file_types_are_selected() {
    let folder = tree();
    assert_eq!(lines(&order_in(&folder.path("."), &["-t", "l"])), ["./link"]);
    assert_eq!(lines(&order_in(&folder.path("."), &["-t", "l,f"])).len(), 5);
    Ran::of(order_in(&folder.path("."), &["-t", "x"])).refused(2, &["'x'", "possible values: f, d, l"]);
}

#[test]
fn names_are_printed_unchanged_with_one_warning_of_newlines() {
    let folder = Folder::new();
    let names: [&[u8]; 3] = [b"\xff\xfe", b"two\nlines", b"also\ntwo"];
    names.iter().for_each(|name| fs::write(folder.path(".").join(OsStr::from_bytes(name)), "x").unwrap());
    let printed = order_in(&folder.path("."), &["-0", "--type", "f", "--by", "inode"]);
    let seen: BTreeSet<&[u8]> = printed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    assert_eq!(seen, BTreeSet::from([b"./\xff\xfe".as_slice(), b"./two\nlines", b"./also\ntwo"]));
    assert_eq!((printed.status.code(), printed.stderr.as_slice()), (Some(0), b"".as_slice()));
    let warned = order_in(&folder.path("."), &["--by", "inode"]);
    let message = String::from_utf8(warned.stderr).unwrap();
    assert_eq!(message.matches("the path contains a newline").count(), 1, "{message}");
    assert!(message.contains("use -0") && warned.status.success(), "{message}");
    let json = order_in(&folder.path("."), &["--json", "--type", "f"]);
    let json: Vec<serde_json::Value> = lines(&json).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(json.iter().any(|path| path["path_hex"] == "2e2ffffe" && path["kind"] == "file"), "{json:?}");
}

#[test]
fn a_list_is_sorted_and_its_errors_are_reported_at_the_end() {
    let folder = tree();
    let list = "a/2\nabsent\n0\n\na\n0\nlink\n";
    let output = order_list(&folder.path("."), &["--files-from", "-", "--by", "inode"], list.as_bytes());
    let ran = Ran::of(output);
    let printed: Vec<String> = ran.out.lines().map(str::to_owned).collect();
    assert_eq!(set(&printed), BTreeSet::from(["a", "a/2", "0", "link"]));
    assert_eq!((ran.code, printed.len(), printed[0].as_str()), (Some(1), 4, "a"));
    for part in [
        "error: absent: stat failed: No such file",
        "error: the list on standard input: path 4: an empty path",
        "note: 1 path occurs more than once in the list on standard input",
    ] {
        assert!(ran.err.contains(part), "`{part}` is missing in: {}", ran.err);
    }
}

#[test]
fn a_list_with_the_wrong_terminator_causes_a_hint_to_the_right_option() {
    let folder = tree();
    let ran = Ran::of(order_list(&folder.path("."), &["--files-from", "-"], b"0\0a/2\0"));
    ran.refused(1, &["path 1", "use --files-from0"]);
    let ran = Ran::of(order_list(&folder.path("."), &["--files-from0", "-"], b"0\na/2\n"));
    ran.refused(1, &["0\\na/2\\n", "use --files-from"]);
    Ran::of(order_in(&folder.path("."), &["--files-from", "nowhere"]))
        .refused(1, &["nowhere: the list cannot be read"]);
    Ran::of(order_in(&folder.path("."), &["--files-from", "-", "a"])).refused(2, &["cannot be used with"]);
}

#[test]
fn a_window_prints_before_the_list_has_ended() {
    let folder = tree();
    let mut child = hoistway(&["order", "--files-from", "-", "--window", "2"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut list = child.stdin.take().expect("a pipe");
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    list.write_all(b"0\na/2\n").unwrap();
    list.flush().unwrap();
    let first: BTreeSet<String> = printed.by_ref().take(2).map(Result::unwrap).collect();
    assert_eq!(first, BTreeSet::from(["0".to_owned(), "a/2".to_owned()]));
    list.write_all(b"c/1\n").unwrap();
    drop(list);
    assert_eq!(printed.map(Result::unwrap).collect::<Vec<_>>(), ["c/1"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn windows_print_the_same_paths_and_directories_before_their_contents() {
    let folder = Folder::new();
    for number in 0..3000 {
        let path = folder.path(&format!("{}/{}/{number}", number % 7, number % 5));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let whole = lines(&order_in(&folder.path("."), &[]));
    let parts = lines(&order_in(&folder.path("."), &["--window", "100"]));
    assert_eq!((set(&whole), whole.len()), (set(&parts), parts.len()));
    let mut seen = BTreeSet::new();
    for path in &parts {
        let above = Path::new(path).parent().filter(|above| !above.as_os_str().is_empty());
        assert!(above.is_none_or(|above| seen.contains(above.to_str().unwrap())), "{path}");
        seen.insert(path.as_str());
    }
}

#[test]
fn a_closed_pipe_causes_no_message() {
    let folder = Folder::new();
    (0..20_000).for_each(|number| {
        fs::write(folder.path(&format!("a long name, so that a pipe is full {number}")), "").unwrap()
    });
    let mut child = hoistway(&["order", "--by", "inode"])
        .current_dir(folder.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut some = [0; 10];
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut some).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn unreadable_names_are_reported_at_the_end_and_the_rest_is_printed() {
    let Some(image) = Image::new("ext4", &[]) else { return };
    for name in ["open", "closed", "shut/inside"] {
        image.file(name, vec![1; 5000]);
    }
    image.sync();
    fs::set_permissions(image.path("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(image.path("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    for directory in [&image.root, image.root.parent().unwrap()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = hoistway(&["order", "--type", "f,d", "."]).current_dir(&image.root).uid(65_534).gid(65_534).output();
    let Ok(ran) = ran else { return skipped("another user cannot start the binary where it lies").unwrap_or_default() };
    let ran = Ran::of(ran);
    let printed: Vec<String> = ran.out.lines().map(str::to_owned).collect();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(set(&printed), BTreeSet::from([".", "./open", "./shut", "./lost+found"]));
    for name in ["./closed", "./shut", "./lost+found"] {
        assert!(ran.err.contains(&format!("error: {name}: cannot be opened: Permission denied")), "{}", ran.err);
    }
}

#[test]
fn a_file_system_without_extents_causes_a_note_or_an_error_with_by_block() {
    let Some(image) = Image::new("tmpfs", &[]) else { return };
    (0..20).for_each(|number| image.file(&number.to_string(), "x"));
    let ran = Ran::of(order_in(&image.root, &["--type", "f"]));
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 20));
    assert_eq!(ran.err.matches("does not report extents").count(), 1, "{}", ran.err);
    let ran = Ran::of(order_in(&image.root, &["--type", "f", "--by", "block"]));
    assert_eq!((ran.code, ran.out.lines().count()), (Some(1), 20));
    let ran = Ran::of(order_in(&image.root, &["--type", "f", "--by", "inode"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

/// Creates an ext4 image whose disk order differs from the order of names and directories.
fn scattered() -> Option<Image> {
    let image = Image::new("ext4", &[])?;
    for number in 0..400u64 {
        image.file(&format!("{}/{:03}", number * 7 % 13, number * 31 % 400), vec![number as u8; 9000]);
    }
    symlink("nowhere", image.path("broken")).unwrap();
    fs::hard_link(image.path("0/000"), image.path("another name")).unwrap();
    image.sync();
    Some(image)
}

#[test]
fn files_come_in_the_order_in_which_filefrag_finds_them() {
    let Some(image) = scattered() else { return };
    let printed = lines(&order_in(&image.root, &["--type", "f"]));
    assert_eq!(printed.len(), 401);
    let mut places = Vec::new();
    for path in printed.iter().step_by(20) {
        let Some(extents) = filefrag(&image.path(path)) else { return };
        places.push(extents[0].1);
    }
    assert!(places.is_sorted(), "{places:?}");
    let default = Ran::of(order_in(&image.root, &["--explain", "--json"])).json();
    let of = &default["file_systems"][0];
    // The image is on a loop device, which is as fast as the disk that holds the image.
    let why = of["why_drive"].as_str().unwrap();
    assert!(why.contains("of this machine: it is on ") || why.contains("no drive behind it"), "{why}");
    let text = Ran::of(order_in(&image.root, &["--explain"])).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("Drive: {}, {why}.", of["drive"].as_str().unwrap())), "{text}");
    let disk = ["--explain", "--json", "--drive", "sata-7200-2006"];
    let explained = Ran::of(order_in(&image.root, &disk)).json();
    let of = &explained["file_systems"][0];
    assert_eq!((&of["files"], &of["drive"]), (&400.into(), &"sata-7200-2006".into()));
    assert!(of["why_drive"].is_null(), "{of}");
    let cost = |order: usize, key: &str| of["orders"][order][key].as_f64().unwrap();
    assert_eq!(of["orders"][3]["order"], "block");
    assert!(
        cost(3, "distance_bytes") < cost(1, "distance_bytes") / 5.0 && cost(3, "seconds") < cost(1, "seconds"),
        "{of}"
    );
    assert_eq!(cost(3, "reads"), 400.0);
}

#[test]
fn an_explanation_is_a_table_and_a_page() {
    let Some(image) = scattered() else { return };
    let folder = Folder::new();
    let page = folder.name("page.html");
    let ran = Ran::of(order_in(&image.root, &["--explain", "--drive", "cmr-8tb", "--report", &page]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in ["400 files of 3.60 MB in 400 extents", "readdir", "name", "inode", "block", "cmr-8tb", "times as long"]
    {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    let page = fs::read_to_string(page).unwrap();
    // A wide and a narrow picture of each order.
    assert_eq!(page.matches("class=\"points\" d=\"M").count(), 8);
    let small = Ran::of(order_in(&image.root, &["--explain", "--drive", "nowhere"]));
    small.refused(2, &["there is no drive `nowhere`; `hoistway drives` lists all"]);
    Ran::of(order_in(&image.root, &["--drive", "cmr-8tb"])).refused(2, &["--explain"]);
}

/// Returns all paths below a directory with contents or link targets.
fn contents(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut all = BTreeSet::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        let is = fs::symlink_metadata(&path).unwrap();
        if is.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            all.insert((name, Vec::new()));
        } else if is.is_symlink() {
            all.insert((name, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
        } else {
            all.insert((name, fs::read(&path).unwrap()));
        }
    }
    all
}

/// Runs a pipeline in a directory and returns its output; `None` if a program is not installed.
fn shell(folder: &Path, needs: &str, pipeline: &str) -> Option<Output> {
    if !Command::new("which").arg(needs).output().is_ok_and(|found| found.status.success()) {
        return skipped(&format!("{needs} is not installed"));
    }
    let script = pipeline.replace("hoistway", env!("CARGO_BIN_EXE_hoistway"));
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{pipeline}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output)
}

/// The recipes of docs/order.md: the copy by another program equals its source.
#[test]
fn tar_cpio_and_rsync_make_the_same_tree_of_the_list() {
    let folder = Folder::new();
    fs::create_dir(folder.path("photos")).unwrap();
    for number in 0..200 {
        let path = folder.path(&format!("photos/{}/{}/{number}", number % 7, number % 3));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("contents {number}")).unwrap();
    }
    fs::write(folder.path("photos/two\nlines"), "x").unwrap();
    fs::create_dir(folder.path("photos/empty")).unwrap();
    symlink("0/0/0", folder.path("photos/link")).unwrap();
    let recipes = [
        (
            "tar",
            "hoistway order -0 photos | tar --no-recursion --null -T - -cf a.tar && mkdir tar && tar -xf a.tar -C tar",
        ),
        (
            "bsdtar",
            "hoistway order -0 photos | bsdtar --no-recursion --null -T - -cf b.tar && mkdir bsdtar && tar -xf b.tar -C bsdtar",
        ),
        (
            "cpio",
            "hoistway order -0 photos | cpio -0 -o --quiet -H newc > a.cpio && mkdir cpio && cd cpio && cpio -i --quiet < ../a.cpio",
        ),
        ("rsync", "hoistway order -0 photos | rsync -a --from0 --files-from=- . rsync/"),
    ];
    let source = contents(&folder.path("photos"));
    assert_eq!(source.len(), 200 + 7 + 21 + 4);
    for (program, recipe) in recipes {
        if shell(&folder.path("."), program, recipe).is_some() {
            assert_eq!(contents(&folder.path(program).join("photos")), source, "{program}");
        }
    }
}

#[test]
fn checksums_are_those_of_any_other_order() {
    let folder = tree();
    let ours = "hoistway order -0 --type f . | xargs -0 -P1 sha256sum | sort";
    let others = "find . -type f -print0 | xargs -0 sha256sum | sort";
    let printed = |pipeline: &str| shell(&folder.path("."), "sha256sum", pipeline).map(|output| output.stdout);
    assert_eq!(printed(ours), printed(others));
}
