//! The commands of a program with an elevator of its own, `examples/custom-elevator`.

use std::process::Command;

use crate::common::{Folder, Ran, decisions, example};

/// Four sequential readers, whose head moves between their files unless an elevator waits for them.
const READERS: &str = "[readers]\nrw=read\nbs=64k\nsize=16m\nnumjobs=4\n";

fn program(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(example(name));
    command.args(args).env_remove("NO_COLOR");
    command
}

fn run(args: &[&str]) -> Ran {
    Ran::of(program("my-hoistway", args).output().expect("it starts"))
}

/// Runs a command in a folder with the job file `readers.fio`.
fn run_on_readers(name: &str, args: &[&str]) -> Ran {
    let folder = Folder::new();
    folder.file("readers.fio", READERS);
    Ran::of(program(name, args).current_dir(folder.path("")).output().expect("it starts"))
}

#[test]
fn it_is_listed_and_explained_and_completed_by_its_name() {
    let listed = run(&["elevators"]);
    assert!(listed.out.lines().any(|line| line.starts_with("slices ") && line.contains("in turn")), "{}", listed.out);
    assert!(listed.out.lines().any(|line| line.starts_with("cfq ")));
    let explained = run(&["elevators", "slices"]);
    let row = explained.out.lines().find(|line| line.trim_start().starts_with("slice_ms")).expect("its tunable");
    assert!(row.contains("100 ms") && row.contains("1 to 1000"), "{row}");
    assert!(!explained.out.contains("docs/elevators"), "it has no page: {}", explained.out);
    run(&["elevators", "slizes"]).refused(2, &["there is no elevator `slizes`", "did you mean `slices`?"]);
    let typed = ["--", "my-hoistway", "compare", "--elevators", "sli"];
    let completed = program("my-hoistway", &typed).env("HOISTWAY_COMPLETE", "fish").output().expect("it starts");
    let completed = Ran::of(completed);
    assert!(completed.out.contains("slices\tTime slices for each process"), "{} {}", completed.out, completed.err);
    for (shell, registration) in [
        ("bash", "complete -o nosort -o bashdefault -F _my-hoistway my-hoistway"),
        ("zsh", "#compdef my-hoistway"),
        ("fish", "my-hoistway"),
    ] {
        let script = run(&["completions", shell]);
        assert!(script.out.contains(registration), "{}", script.out);
    }
}

#[test]
fn competing_sequential_readers_are_faster_than_under_elevators_that_do_not_wait() {
    let elevators = "slices,bfq,cfq,deadline,noop";
    let args = ["compare", "readers.fio", "--drive", "sata-7200-2006", "--elevators", elevators];
    let table = run_on_readers("my-hoistway", &args);
    assert_eq!((table.code, table.err.as_str()), (Some(0), ""));
    assert!(table.out.lines().any(|line| line.starts_with("slices ")), "{}", table.out);
    let document = run_on_readers("my-hoistway", &[&args[..], &["--json"]].concat()).json();
    let of = |name: &str| {
        let all = document["elevators"].as_array().expect("a list");
        let found = all.iter().find(|run| run["name"] == name).unwrap_or_else(|| panic!("{name} is missing"));
        found["bytes_per_s"].as_f64().expect("a number")
    };
    for other in ["deadline", "noop"] {
        assert!(of("slices") > 1.5 * of(other), "slices {}, {other} {}", of("slices"), of(other));
    }
}

#[test]
fn its_tunables_are_set_and_checked() {
    let with = |setting: &str| {
        let args = ["compare", "readers.fio", "--drive", "sata-7200-2006", "--elevators", "slices", "--json"];
        run_on_readers("my-hoistway", &[&args[..], &["--set", setting]].concat())
    };
    let speed = |setting: &str| with(setting).json()["elevators"][0]["bytes_per_s"].as_f64().expect("a number");
    assert!(speed("slices.idle_ms=8") > 1.5 * speed("slices.idle_ms=0"), "it waits for the next request");
    assert!(speed("slices.slice_ms=200ms") > speed("slices.slice_ms=2"), "longer slices, fewer seeks");
    with("slices.slice_ms=0").refused(2, &["slices.slice_ms=0", "slice_ms takes 1 to 1000 (ms)"]);
    with("slices.slice_ms=soon").refused(2, &["`soon` is not a number in ms"]);
    with("slices.slise_ms=5").refused(2, &["did you mean `slice_ms`?"]);
}

#[test]
fn a_sweep_varies_its_tunable() {
    let folder = Folder::new();
    folder.file("readers.fio", READERS);
    let file = folder.file(
        "sweep.toml",
        "jobs = [\"readers.fio\"]\ndrives = [\"sata-7200-2006\"]\nelevators = [\"slices\", \"deadline\"]\n\
         [vary]\n\"slices.idle_ms\" = [0, 8]\n",
    );
    let swept = run(&["sweep", &file, "-o", &folder.name("results")]);
    // Two values under `slices`, and `deadline` once.
    assert_eq!(swept.code, Some(0), "{}", swept.err);
    assert!((swept.out + &swept.err).contains("3 of 3 points simulated"));
    let again = run(&["sweep", &file, "-o", &folder.name("results")]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!((again.out + &again.err).contains("0 of 3 points simulated, 3 had a result already"));
}

/// The guide shows parts of the crate.
#[test]
fn the_guide_shows_the_sources_as_they_are() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("it is in the repository");
    let sources =
        ["Cargo.toml", "src/lib.rs", "src/main.rs"].map(|name| read(&format!("examples/custom-elevator/{name}")));
    // Lines without their indentation: the guide shows methods without the `impl` around them.
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let sources = lines(&sources.concat());
    let guide = read("docs/write-an-elevator-in-rust.md");
    let blocks: Vec<&str> = guide.split("```").skip(1).step_by(2).collect();
    let mut shown = 0;
    for block in blocks.iter().filter_map(|block| block.strip_prefix("rust\n").or(block.strip_prefix("toml\n"))) {
        assert!(sources.contains(lines(block).trim()), "the crate does not have: {block}");
        shown += 1;
    }
    assert_eq!(shown, 4);
}

#[test]
fn the_cost_of_its_calls_is_measured() {
    let args = ["bench", "elevators", "--elevators", "slices,noop", "--processes", "2", "--requests", "2000", "--json"];
    let document = run(&args).json();
    assert!(document.to_string().contains("\"slices\""), "{document}");
}

#[test]
fn conform_has_no_recording_for_it() {
    let file = decisions("linux-4.19-noop.jsonl.gz");
    let ran = run(&["conform", "--markdown", file.to_str().expect("UTF-8")]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let end = "No recording is for `slices`, which hoistway does not contain.\n";
    assert!(ran.out.ends_with(end), "{}", ran.out);
}

#[test]
fn a_wrong_elevator_ends_a_simulation_with_the_rule_the_request_and_the_time() {
    // An SSD takes several requests at a time.
    let run_wrong = |name: &str| {
        let args = ["compare", "readers.fio", "--drive", "ssd-sata-consumer", "--elevators", name];
        run_on_readers("wrong-elevators", &args)
    };
    run_wrong("losing").refused(1, &["elevator `losing` with seed 1: call ", "returned nothing although", "at sector"]);
    run_wrong("twice").refused(1, &["elevator `twice` with seed 1: call 2 of dispatch", "dispatched before"]);
}
