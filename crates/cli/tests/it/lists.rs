//! `hoistway elevators`, `drives` and `man`, and the common behaviour of commands.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::{Folder, Ran, hoistway, run};
use hoistway_core::Kind;
use serde_json::json;

#[test]
fn the_long_version_names_the_commit() {
    let version = format!("hoistway {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["-V"]).out, format!("{version}\n"));
    let commit = Command::new("git").args(["log", "-1", "--abbrev=12", "--format= (%h %cs)"]).output();
    let Some(commit) = commit.ok().filter(|output| output.status.success()) else { return };
    let commit = String::from_utf8_lossy(&commit.stdout).into_owned();
    assert_eq!(run(&["--version"]).out, format!("{version}{commit}"));
}

#[test]
fn every_elevator_has_a_line() {
    let ran = run(&["elevators"]);
    assert_eq!(ran.code, Some(0));
    for kind in Kind::ALL {
        let name = format!("{} ", kind.info().name);
        let mut lines = ran.out.lines().filter(|line| line.starts_with(&name));
        let headline = kind.info().headline;
        assert!(lines.next().is_some_and(|line| line.ends_with(headline)) && lines.next().is_none(), "{}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
}

#[test]
fn an_elevator_is_explained_with_the_defaults_and_ranges_of_its_tunables() {
    let ran = run(&["elevators", "deadline"]);
    let row = ran.out.lines().find(|line| line.trim_start().starts_with("read_expire ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..3], ["read_expire", "500", "ms"]);
    assert!(ran.out.contains("Trade-off:"), "{}", ran.out);
}

#[test]
fn an_alias_explains_its_elevator() {
    assert_eq!(run(&["elevators", "as"]).out, run(&["elevators", "anticipatory"]).out);
}

#[test]
fn an_explanation_mentions_groups_and_reservations() {
    for kind in Kind::ALL {
        let info = kind.info();
        let out = run(&["elevators", info.name]).out;
        assert_eq!(out.contains("Divides the disk among control groups"), info.groups, "{out}");
        assert_eq!(out.contains("Knows no control groups"), !info.groups, "{out}");
        assert_eq!(out.contains("Takes reservations of bandwidth"), info.reservations, "{out}");
        let document = run(&["elevators", info.name, "--json"]).json();
        let elevator = &document["elevators"][0];
        assert_eq!((&elevator["groups"], &elevator["reservations"]), (&json!(info.groups), &json!(info.reservations)));
    }
}

#[test]
fn elevators_as_json_have_the_registry_s_rows() {
    let document = run(&["elevators", "cfq-v3", "--json"]).json();
    let elevators = document["elevators"].as_array().expect("a list");
    assert_eq!((&document["schema"], elevators.len()), (&json!(1), 1));
    let tunables = elevators[0]["tunables"].as_array().expect("a list");
    let idle = tunables.iter().find(|row| row["name"] == "slice_idle").expect("slice_idle");
    assert_eq!((&idle["default"], &idle["unit"], &idle["min"]), (&json!(8), &json!("ms"), &json!(0)));
}

#[test]
fn every_drive_has_a_line() {
    let ran = run(&["drives"]);
    let row = ran.out.lines().find(|line| line.starts_with("sata-7200-2006 ")).expect("the default drive");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..4], ["7200", "200", "GB"]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    // The figure is a number of reads; `4 KiB/s` would be a rate of bytes.
    let head: Vec<&str> = ran.out.lines().take_while(|line| !line.starts_with('-')).collect();
    assert!(head[0].contains("random 4 KiB") && head[1].contains("reads/s"), "{head:?}");
}

#[test]
fn a_profile_file_is_explained_like_a_built_in_drive() {
    let folder = Folder::new();
    let file = folder.file("mine.toml", include_str!("../../../drive/profiles/sata-7200-2006.toml"));
    let ran = run(&["drives", &file]);
    assert_eq!((ran.code, ran.out), (Some(0), run(&["drives", "sata-7200-2006"]).out));
}

#[test]
fn drives_as_json_have_null_where_there_is_no_platter() {
    let document = run(&["drives", "--json"]).json();
    let drives = document["drives"].as_array().expect("a list");
    let named = |name: &str| drives.iter().find(|drive| drive["name"] == name).expect("built in");
    let sata = named("sata-7200-2006");
    assert!((sata["rpm"].as_f64().expect("a number") - 7200.0).abs() < 0.5, "{}", sata["rpm"]);
    assert!(sata["zones"].as_array().is_some_and(|zones| zones.len() == 16));
    assert!(named("null")["rpm"].is_null() && named("null")["full_seek_ms"].is_null());
}

#[test]
fn probed_disk_shows_its_rotation_and_seeks_as_text_and_as_json() {
    let text = run(&["drives", "--probe", "slide-7200", "--only", "rotation,seek"]);
    assert_eq!(text.code, Some(0), "{}", text.err);
    assert!(text.out.contains("8.3333 ms, 7200.0 rpm"), "{}", text.out);
    // A chart is drawn with braille dots, and no line is too wide for a terminal of 80 columns.
    assert!(text.out.chars().any(|letter| ('\u{2801}'..='\u{28ff}').contains(&letter)), "{}", text.out);
    assert!(text.out.lines().all(|line| line.chars().count() <= 100), "{}", text.out);
    let document = run(&["drives", "--probe", "slide-7200", "--only", "rotation", "--json"]).json();
    let revolution_ns = document["rotation"]["revolution_ns"].as_f64().expect("a number");
    assert!((revolution_ns - 60e9 / 7200.0).abs() < 1000.0, "{revolution_ns}");
    assert!(document["seek"].is_null() && document["zones"].is_null());
}

#[test]
fn probed_drive_has_a_page_whose_only_script_is_the_choice_of_theme() {
    let folder = Folder::new();
    let page = folder.name("page.html");
    let ran = run(&["drives", "--probe", "ssd-fiops", "--only", "depth", "--report", &page]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("<h1>ssd-fiops, measured from outside</h1>") && html.contains("<polyline"));
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn output_in_a_pipe_has_no_escapes() {
    for args in [&["elevators", "cfq-v3"][..], &["drives", "sata-7200-2006"], &["--help"]] {
        let ran = run(args);
        assert!(ran.code == Some(0) && !ran.out.contains('\u{1b}'), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_causes_no_error() {
    // The list of drives as JSON is longer than a pipe holds, so that it meets the closed end.
    let mut child =
        hoistway(&["drives", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0; 1];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("it prints");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_standard_output_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = hoistway(&["elevators"]).stdout(full).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("standard output cannot be written"), "{said}");
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = Folder::new();
    let dated = |args: &[&str]| {
        // 27 November 2026.
        Ran::of(hoistway(args).env("SOURCE_DATE_EPOCH", "1795737600").output().expect("it starts"))
    };
    let ran = dated(&["man", &folder.name("man1")]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for page in ["hoistway", "hoistway-compare", "hoistway-serve", "hoistway-bench-sim"] {
        let text = std::fs::read_to_string(folder.path(&format!("man1/{page}.1"))).expect("it was written");
        assert!(text.contains(&format!(".TH {page} 1 2026-11-27 \"hoistway ")), "{text}");
        let sections = ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "NOTES", "EXAMPLES", "\"SEE ALSO\""];
        let places = sections.map(|section| text.find(&format!("\n.SH {section}\n")));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{page}: {places:?}");
    }
    let page = dated(&["man"]).out;
    assert!(page.contains(".TH hoistway 1 2026-11-27 "), "{page}");
    assert!(page.contains("\n.SH EXAMPLES\n.nf\nhoistway  "), "{page}");
}

#[test]
fn manual_pages_list_the_files_of_the_units() {
    let folder = Folder::new();
    run(&["man", &folder.name("man1")]);
    let units = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let rows: [(&str, &str, [&str; 2]); 2] = [
        ("hoistway.service", "hoistway-serve", ["/etc/hoistway.toml", "/run/hoistway/control.sock"]),
        ("hoistway-mount@.service", "hoistway-mount", ["/etc/hoistway-mount/%i.toml", "/run/hoistway-mount/%i.sock"]),
    ];
    for (unit, page, paths) in rows {
        let unit = std::fs::read_to_string(units.join(unit)).expect("a unit");
        assert!(unit.contains("\nRestartPreventExitStatus=2\n"), "{unit}");
        let page = std::fs::read_to_string(folder.path(&format!("man1/{page}.1"))).expect("a page");
        assert!(page.contains("\n.TP\n2\nInvalid command line or configuration.\n"), "{page}");
        for path in paths {
            let tag = path.replace("%i", "NAME").replace('-', "\\-");
            assert!(unit.contains(path) && page.contains(&format!("\n.TP\n{tag}\n")), "{path}");
        }
    }
}

#[test]
fn manual_pages_have_no_warnings() {
    let folder = Folder::new();
    run(&["man", &folder.name("man1")]);
    for (program, args) in [("mandoc", ["-Tlint", "-Wwarning"]), ("groff", ["-zman", "-ww"])] {
        let pages =
            std::fs::read_dir(folder.path("man1")).expect("a directory").map(|page| page.expect("a page").path());
        let Ok(output) = Command::new(program).args(args).args(pages).output() else {
            eprintln!("SKIPPED: {program} is not installed");
            continue;
        };
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success() && printed.is_empty(), "{}", String::from_utf8_lossy(&printed));
    }
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    run(&["compar"]).refused(2, &["'compar'", "compare"]);
}

#[test]
fn a_benchmark_has_a_cell_for_each_elevator_and_number_of_processes() {
    let args =
        ["bench", "elevators", "--processes", "1,3", "--elevators", "noop,cfq-v3", "--requests", "100", "--runs", "1"];
    let document = run(&[&args[..], &["--json"]].concat()).json();
    let cells = document["elevators"].as_array().expect("a list");
    let keys: Vec<(&str, u64)> =
        cells.iter().map(|cell| (cell["name"].as_str().unwrap(), cell["processes"].as_u64().unwrap())).collect();
    assert_eq!(keys, [("noop", 1), ("noop", 3), ("cfq-v3", 1), ("cfq-v3", 3)]);
    assert!(cells.iter().all(|cell| cell["ns_per_request"].as_f64().is_some_and(|ns| ns > 0.0)));
    let all = ["bench", "elevators", "--processes", "1", "--elevators", "all", "--requests", "100", "--runs", "1"];
    let document = run(&[&all[..], &["--json"]].concat()).json();
    assert_eq!(document["elevators"].as_array().map(Vec::len), Some(Kind::ALL.len()));
    let counted = document["not_counted"].is_null();
    let cells = document["elevators"].as_array().expect("a list");
    assert!(
        cells.iter().all(|cell| cell["per_request"]["instructions"].as_f64().is_some_and(|n| n > 100.0) == counted)
    );
    let tables = if counted { 5 } else { 1 };
    let out = run(&args).out;
    let rows = out.lines().filter(|line| line.starts_with("noop ") || line.starts_with("cfq-v3 "));
    assert_eq!(rows.count(), 2 * tables, "{out}");
    assert_eq!(out.contains("Instructions and cache misses are not counted: "), !counted, "{out}");
}

#[test]
fn the_simulator_s_benchmark_counts_requests_and_memory() {
    let args = ["bench", "sim", "--drive", "sata-7200-2006,null", "--processes", "3", "--requests", "2000", "--json"];
    let document = run(&args).json();
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for (row, drive) in rows.iter().zip(["sata-7200-2006", "null"]) {
        // Three processes and that of the reference make 500 requests each.
        assert_eq!((&row["drive"], &row["requests"], &row["processes"]), (&json!(drive), &json!(2000), &json!(3)));
        assert!(row["requests_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
        #[cfg(target_os = "linux")]
        assert!(row["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));
    }
}

#[test]
fn the_scaling_has_a_row_for_each_size_and_a_sweep_has_the_cores() {
    let args = ["bench", "sim", "--drive", "null", "--requests", "5000", "--json"];
    let rows = run(&[args.as_slice(), &["--scaling"]].concat()).json();
    let sizes: Vec<u64> =
        rows["rows"].as_array().expect("rows").iter().filter_map(|row| row["processes"].as_u64()).collect();
    assert_eq!(sizes, [1, 8, 64, 512, 4096]);
    let sweep = run(&[args.as_slice(), &["--sweep", "2"]].concat()).json();
    assert_eq!(sweep["sweep"]["runs"], json!(2));
    assert!(sweep["sweep"]["speed_up"].as_f64().is_some_and(|times| times > 0.0));
    for cpu in ["one_core_cpu_ns", "all_cores_cpu_ns"] {
        assert!(sweep["sweep"][cpu].as_u64().is_some_and(|ns| ns > 0), "{cpu}");
    }
}
