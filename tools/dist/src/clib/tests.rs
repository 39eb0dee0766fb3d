//! The library as C programs meet it: found by pkg-config, linked statically and dynamically, and
//! run.

use hoistway_workspace::programs;
use std::process::Output;
use std::sync::OnceLock;

use super::*;

/// The programs of the tests.
const TOOLS: [&str; 6] = ["cc", "ar", "nm", "objcopy", "make", "pkg-config"];
const EXAMPLES: &str = "examples/c";
const PAGE: &str = "docs/c-library.md";

/// The workspace of this crate, and the directory in which this test was built.
fn workspace() -> Workspace {
    let test = std::env::current_exe().expect("this test has a path");
    // target/PROFILE/deps/TEST
    let target = test.ancestors().nth(3).expect("the path of a test is target/PROFILE/deps/TEST");
    Workspace { root: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), target_directory: target.to_owned() }
}

/// The prefix of the library, which the first test builds; `None` if a program is missing.
fn prefix() -> Option<&'static Path> {
    static PREFIX: OnceLock<Option<PathBuf>> = OnceLock::new();
    let prefix = PREFIX.get_or_init(|| {
        if let Some(missing) = TOOLS.iter().find(|program| programs::find(program).is_none()) {
            eprintln!("SKIPPED: {missing} is missing");
            return None;
        }
        let prefix = scratch("prefix");
        let places = Places { prefix: prefix.clone(), libraries: "lib".into(), relocatable: true };
        build(&workspace(), &places).expect("the library is built");
        Some(prefix)
    });
    prefix.as_deref()
}

/// Returns an empty directory of a test.
fn scratch(name: &str) -> PathBuf {
    let directory = workspace().target_directory.join("clib-test").join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("the old directory is removed");
    }
    fs::create_dir_all(&directory).expect("a directory");
    directory
}

fn text(path: &str) -> String {
    fs::read_to_string(workspace().root.join(path)).expect(path)
}

/// A way to link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Linking {
    Static,
    Shared,
}

/// Builds the examples as their README says, into an empty directory.
fn build_examples(prefix: &Path, linking: Linking) -> PathBuf {
    let directory = scratch(&format!("{linking:?}"));
    let mut make = Command::new("make");
    make.arg("-C").arg(workspace().root.join(EXAMPLES)).arg(format!("OUT={}", directory.display()));
    make.arg("CFLAGS=-O2 -g -Werror");
    // The flags of a `make` around this test are not for this one.
    make.env_remove("MAKEFLAGS").env_remove("CFLAGS").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    if linking == Linking::Static {
        make.arg("STATIC=1");
    }
    succeeded(&make.output().expect("make starts"), "make");
    for name in ["replay", "storage_engine"] {
        let needed = programs::output(Command::new("objdump").arg("-p").arg(directory.join(name))).expect("objdump");
        assert_eq!(needed.contains(&soname()), linking == Linking::Shared, "{name}, {linking:?}");
    }
    directory
}

/// Returns the output of a program that has to succeed.
fn succeeded(output: &Output, what: &str) -> String {
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{printed}{errors}", output.status);
    printed.into_owned()
}

/// Runs a program with the shared library, under valgrind if it is there.
fn run_program(prefix: &Path, program: &Path, arguments: &[&str], checked: bool) -> String {
    let mut command = if checked && programs::find("valgrind").is_some() {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=1", "--leak-check=full", "--errors-for-leak-kinds=all"]);
        valgrind.arg(program);
        valgrind
    } else {
        if checked {
            eprintln!("SKIPPED: valgrind is missing");
        }
        Command::new(program)
    };
    command.args(arguments).env("LD_LIBRARY_PATH", prefix.join("lib"));
    succeeded(&command.output().expect("the program starts"), &format!("{} {arguments:?}", program.display()))
}

#[test]
fn replayed_requests_are_dispatched_in_the_recorded_order() {
    let Some(prefix) = prefix() else { return };
    let requests = workspace().root.join(EXAMPLES).join("requests.txt");
    let requests = requests.to_str().expect("a path in UTF-8");
    let readme = text(&format!("{EXAMPLES}/README.md"));
    for linking in [Linking::Static, Linking::Shared] {
        let replay = build_examples(prefix, linking).join("replay");
        for elevator in ["noop", "deadline", "cfq-v3"] {
            let path = format!("{EXAMPLES}/expected/{elevator}.txt");
            let expected = text(&path);
            assert_eq!(run_program(prefix, &replay, &[elevator, requests], false), expected, "{elevator}, {linking:?}");
            let shown = format!("<!-- expected/{elevator}.txt -->\n```\n{expected}```");
            assert!(elevator == "deadline" || readme.contains(&shown), "the README does not show {path}");
        }
        assert_eq!(run_program(prefix, &replay, &["cfq-v3", requests], true), text("examples/c/expected/cfq-v3.txt"));
        check_errors(prefix, &replay, linking);
        check_engine(prefix, &replay.with_file_name("storage_engine"));
        check_foreign_file(prefix, &replay.with_file_name("storage_engine"));
    }
}

#[test]
fn the_elevator_of_the_storage_engine_has_150_lines_of_code() {
    let source = text(&format!("{EXAMPLES}/io_scheduler.c"));
    let mut in_comment = false;
    let is_code = |line: &&str| {
        let line = line.trim();
        let begins = line.starts_with("/*");
        let is_comment = in_comment || begins;
        in_comment = is_comment && !line.ends_with("*/");
        !line.is_empty() && !is_comment
    };
    assert_eq!(source.lines().filter(is_code).count(), 150);
}

/// Runs `replay` with requests that are wrong.
fn check_errors(prefix: &Path, replay: &Path, linking: Linking) {
    let wrong = scratch(&format!("wrong-{linking:?}")).join("wrong.txt");
    for (lines, message) in [
        ("0 1 raed 8 8\n", "wrong.txt:1: the operation is \"raed\"; read or write is right"),
        (
            "# none\n5 1 read 0 8\n4 1 read 0 8\n",
            "wrong.txt:3: the time is \"4\"; a number from 5 to 4294967295 is right",
        ),
        ("5 1 write 0\n", "wrong.txt:1: the length is \"\"; a number from 1 to 2048 is right"),
        ("5 1 write 0 8 9\n", "wrong.txt:1: \"9\" is a sixth word; a request has five"),
        (&format!("0 1 read 0 8\n{}\n", " ".repeat(300)), "wrong.txt:2: the line is longer than 254 bytes"),
    ] {
        fs::write(&wrong, lines).expect("a file");
        let mut command = Command::new(replay);
        let output =
            command.arg("noop").arg(&wrong).env("LD_LIBRARY_PATH", prefix.join("lib")).output().expect("output");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(message), "{errors}");
    }
    let run = |elevator: &str, file: &Path| {
        let mut command = Command::new(replay);
        let output = command.arg(elevator).arg(file).env("LD_LIBRARY_PATH", prefix.join("lib")).output();
        String::from_utf8_lossy(&output.expect("output").stderr).into_owned()
    };
    assert!(run("noop", Path::new("/")).contains("replay: /: Is a directory"));
    fs::write(&wrong, "").expect("a file without requests");
    assert!(run("lift", &wrong).contains("no elevator is named \"lift\"; there are linus noop deadline"));
}

/// Runs the storage engine on a file that another program made: it keeps what it has.
fn check_foreign_file(prefix: &Path, engine: &Path) {
    let file = engine.with_file_name("foreign");
    fs::write(&file, "precious").expect("a file");
    let mut command = Command::new(engine);
    let output = command.arg("noop").arg(&file).env("LD_LIBRARY_PATH", prefix.join("lib")).output().expect("output");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && errors.contains("foreign would be overwritten"), "{errors}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "precious");
}

/// Runs the storage engine for longer and longer until the shares of the clients are the expected
/// ones: the machine may run none of its threads for seconds.
fn check_shares(seconds: &[&str], are_expected: impl Fn(&[f64; 4]) -> bool, run: impl Fn(&str) -> String) {
    let mut printed = String::new();
    for seconds in seconds {
        printed = run(seconds);
        let share = |name: &str| -> f64 {
            let line = printed.lines().find(|line| line.starts_with(name));
            let words = line.map(|line| line.split_whitespace().collect::<Vec<_>>());
            words.and_then(|words| words[words.len() - 2].parse().ok()).unwrap_or_else(|| panic!("{name}: {printed}"))
        };
        let shares = ["reads at level 0", "reads at level 7", "writes at level 0", "writes at level 7"].map(share);
        let sum: f64 = shares.iter().sum();
        assert!(sum == 0.0 || (sum - 100.0).abs() < 0.5, "{printed}");
        if are_expected(&shares) {
            return;
        }
    }
    panic!("{printed}");
}

/// Runs the storage engine: every client gets a share, and under bfq the two of level 0 get more
/// than those of level 7.
fn check_engine(prefix: &Path, engine: &Path) {
    let file = engine.with_file_name("data");
    let file = file.to_str().expect("a path in UTF-8");
    // Eight to one on an idle machine; a busy one delays the threads that submit.
    let by_level = |shares: &[f64; 4]| {
        shares[0] + shares[2] > 1.5 * (shares[1] + shares[3]) && shares.iter().all(|share| *share > 0.0)
    };
    check_shares(&["1", "4", "16", "60"], by_level, |seconds| {
        run_program(prefix, engine, &["bfq", file, seconds], false)
    });
    let any = |shares: &[f64; 4]| shares.iter().sum::<f64>() > 0.0;
    check_shares(&["0.5", "5", "60"], any, |seconds| run_program(prefix, engine, &["deadline", file, seconds], true));
    assert_eq!(fs::metadata(file).expect("the file").len(), 4 * 1024 * 16384);
}

#[test]
fn the_first_program_of_the_page_prints_what_the_page_shows() {
    let Some(prefix) = prefix() else { return };
    let page = text(PAGE);
    let block = |mark: &str| {
        let behind = page.split_once(mark).expect(mark).1.split_once("```").expect("a block").1;
        let block = behind.split_once("```").expect("the end of the block").0;
        block.split_once('\n').expect("the first line").1.to_owned()
    };
    let directory = scratch("first");
    let (source, program) = (directory.join("first.c"), directory.join("first"));
    fs::write(&source, block("<!-- program: first.c -->")).expect("the program is written");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "hoistway"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output()
        .expect("pkg-config starts");
    let flags = succeeded(&flags, "pkg-config");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program).arg(&source);
    succeeded(&cc.args(flags.split_whitespace()).output().expect("cc starts"), "cc");
    assert_eq!(run_program(prefix, &program, &[], true), block("<!-- output: first.c -->"));
}

#[test]
fn the_library_has_its_links_and_needs_the_c_library_only() {
    let Some(prefix) = prefix() else { return };
    let lib = prefix.join("lib");
    let target = |name: &str| fs::read_link(lib.join(name)).expect(name);
    assert_eq!(target("libhoistway.so"), Path::new("libhoistway.so.0"));
    assert_eq!(target("libhoistway.so.0"), Path::new(&format!("libhoistway.so.{}", env!("CARGO_PKG_VERSION"))));
    let dynamic = programs::output(Command::new("objdump").arg("-p").arg(lib.join("libhoistway.so"))).expect("objdump");
    let entries = |kind: &str| -> Vec<&str> {
        dynamic.lines().filter_map(|line| line.trim().strip_prefix(kind)).map(str::trim).collect()
    };
    assert_eq!(entries("SONAME "), ["libhoistway.so.0"]);
    let needed = entries("NEEDED ");
    assert!(needed.iter().all(|library| library.starts_with("libc.")), "{needed:?}");
    let listed =
        programs::output(Command::new("nm").arg("--undefined-only").arg(lib.join("libhoistway.a"))).expect("nm");
    let undefined: Vec<&str> = listed.lines().filter_map(|line| line.trim().strip_prefix("U ")).collect();
    assert!(undefined.iter().all(|name| ["bcmp", "memcmp", "memcpy", "memmove", "memset"].contains(name)), "{listed}");
}

#[test]
fn only_the_functions_of_the_header_are_exported() {
    let Some(prefix) = prefix() else { return };
    let directory = scratch("exports");
    let (source, object) = (directory.join("more.c"), directory.join("more.o"));
    // Of the names of another library one is not of the interface, and one is not in the header.
    fs::write(&source, "void rust_begin_unwind(void) {}\nvoid hoistway_unknown(void) {}\n").expect("a source");
    programs::run(Command::new("cc").args(["-c", "-fPIC", "-o"]).arg(&object).arg(&source)).expect("cc");
    let hidden = directory.join("hidden.o");
    hide_symbols(&object, &hidden).expect("objcopy");
    let shared = directory.join("libmore.so");
    link_shared(&object, &shared).expect("it links");
    for library in [(&hidden, "--extern-only"), (&shared, "--dynamic")] {
        let (path, option) = library;
        assert_eq!(exported(path, &[option]).expect("nm"), BTreeSet::from(["hoistway_unknown".to_owned()]));
    }
    let error = check_exports(&workspace(), &shared, &["--dynamic"]).expect_err("it is not the library").to_string();
    assert!(error.contains("does not export") && error.contains("hoistway_submit"), "{error}");
    // The real functions and one more.
    let archive = directory.join("libmore.a");
    fs::copy(prefix.join("lib/libhoistway.a"), &archive).expect("a copy");
    check_exports(&workspace(), &archive, &["--extern-only"]).expect("the functions of the header");
    programs::run(Command::new("ar").arg("rs").arg(&archive).arg(&hidden)).expect("ar");
    let error = check_exports(&workspace(), &archive, &["--extern-only"]).expect_err("one too many").to_string();
    assert!(error.ends_with("does not declare: hoistway_unknown"), "{error}");
}

#[test]
fn the_header_compiles_as_c99_and_as_cpp() {
    let Some(prefix) = prefix() else { return };
    let source = scratch("header").join("header.c");
    fs::write(&source, "#include <hoistway.h>\nint main(void) { return (int)hoistway_elevator_count(); }\n")
        .expect("a file");
    for (compiler, options) in [("cc", ["-std=c99", "-xc"]), ("c++", ["-std=c++11", "-xc++"])] {
        if programs::find(compiler).is_none() {
            eprintln!("SKIPPED: {compiler} is missing");
            continue;
        }
        let mut command = Command::new(compiler);
        command.args(options).args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
        let output = command.arg(prefix.join("include")).arg(&source).output().expect("the compiler starts");
        succeeded(&output, compiler);
    }
}

#[test]
fn the_header_is_the_described_one() {
    if prefix().is_some() {
        abi::check(&workspace()).expect("the same ABI");
    }
}

#[test]
fn a_changed_header_is_reported_and_needs_another_soname() {
    if prefix().is_none() {
        return;
    }
    let root = scratch("changed");
    let copy = Workspace { target_directory: root.clone(), root };
    let (header, description) = (copy.root.join(HEADER), copy.root.join("crates/capi/abi.txt"));
    fs::create_dir_all(header.parent().expect("a directory")).expect("a directory");
    let declared = text(HEADER);
    fs::write(&description, text("crates/capi/abi.txt")).expect("a description");

    let new_function = "uint32_t hoistway_new(void);\nuint32_t hoistway_elevator_count(void);";
    fs::write(&header, declared.replace("uint32_t hoistway_elevator_count(void);", new_function)).expect("a header");
    let report = abi::write(&copy, false).expect("an addition is compatible");
    assert!(report.starts_with("compatible:\n  + function hoistway_new = uint32_t (void)\n"), "{report}");

    fs::write(&header, declared.replace("\tuint32_t pid;\n\tuint16_t op;", "\tuint16_t op;")).expect("a header");
    let error = abi::check(&copy).expect_err("a field is missing").to_string();
    assert!(error.contains("  - struct hoistway_request pid = offset 36, size 4, uint32_t"));
    assert!(
        error.contains("  ~ struct hoistway_request op = offset 40, size 2, uint16_t -> offset 36, size 2, uint16_t")
    );
    assert!(error.contains("  - function hoistway_new = uint32_t (void)"), "{error}");
    let error = abi::write(&copy, false).expect_err("an incompatible change").to_string();
    assert!(error.contains("need another soname than libhoistway.so.0"), "{error}");
    abi::write(&copy, true).expect("a soname that was not released");
    abi::check(&copy).expect("the description is that of the header");
}
