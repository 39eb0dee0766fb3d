//! `hoistway trace convert`, `cut` and `merge`, and invalid input.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::{Folder, hoistway, run};

/// Path of a capture in the test data of hoistway-trace.
fn sample(name: &str) -> String {
    format!("{}/../trace/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn capture() -> String {
    sample("blktrace/vda-mq-deadline")
}

/// Runs the command, which must succeed, and returns its output.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out
}

/// Lines of blkparse's text with this action.
fn lines<'a>(text: &'a str, action: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.split_whitespace().nth(5) == Some(action)).collect()
}

#[test]
fn a_trace_goes_through_every_format_with_all_its_events_and_back() {
    let folder = Folder::new();
    let text = printed(&["trace", "convert", &capture(), "-q", "--all-messages"]);
    assert!(lines(&text, "Q").len() > 1000);
    let (table, binary, cpus) = (folder.name("a.csv"), folder.name("a.bin"), folder.name("cpus"));
    printed(&["trace", "convert", &capture(), "-o", &table]);
    printed(&["trace", "convert", &table, "-o", &binary]);
    printed(&["trace", "convert", &binary, "--to", "blktrace-cpus", "-o", &cpus]);
    let again = printed(&["trace", "convert", &cpus, "-q", "--all-messages"]);
    assert!(again == text, "{} and {} lines", again.lines().count(), text.lines().count());
}

#[test]
fn standard_input_is_read_compressed_or_not() {
    let mut child = hoistway(&["trace", "convert", "-", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let packed = std::fs::read(sample("mqsim/tpcc-small-1000.trace.xz")).expect("the sample is there");
    child.stdin.take().expect("a pipe").write_all(&packed).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1000);
}

#[test]
fn assumptions_are_reported() {
    let ran = run(&["trace", "convert", &sample("mqsim/tpcc-small-1000.trace.xz"), "-q"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("assuming times in ns (MQSim's own)"), "{}", ran.err);
}

#[test]
fn a_cut_by_time_has_the_events_of_the_interval() {
    let all = printed(&["trace", "convert", &capture(), "-q"]);
    let early = printed(&["trace", "cut", &capture(), "--to", "0.5", "-q"]);
    let late = printed(&["trace", "cut", &capture(), "--from", "500ms", "-q"]);
    for action in ["Q", "M", "G", "I", "D", "C"] {
        let (early, late) = (lines(&early, action).len(), lines(&late, action).len());
        assert!(early > 0 && late > 0, "{action}: {early} and {late}");
        assert_eq!(early + late, lines(&all, action).len(), "{action}");
    }
}

#[test]
fn a_process_is_followed_to_the_completion_of_its_requests() {
    let all = printed(&["trace", "convert", &capture(), "-q"]);
    // Each Q line names its process; this is the most frequent one.
    let mut submissions = BTreeMap::new();
    for line in lines(&all, "Q") {
        *submissions.entry(line.split_whitespace().nth(4).expect("a process")).or_insert(0) += 1;
    }
    let (pid, _) = submissions.into_iter().max_by_key(|(_, count)| *count).expect("there are requests");
    let kept = printed(&["trace", "cut", &capture(), "--process", pid, "-q"]);
    let submitted = lines(&kept, "Q").len();
    assert!(submitted > 0 && submitted < lines(&all, "Q").len());
    assert_eq!(lines(&kept, "D").len(), lines(&kept, "C").len());
    assert!(lines(&kept, "D").len() + lines(&kept, "M").len() >= submitted);
}

#[test]
fn a_merge_has_the_events_of_all_in_the_order_of_time() {
    let (one, two) = (capture(), sample("blktrace/vda-bfq"));
    let merged = printed(&["trace", "merge", &one, &two, "--align", "--shift", "0,0.25", "-q"]);
    let count = |trace: &str| printed(&["trace", "convert", trace, "-q"]).lines().count();
    assert_eq!(merged.lines().count(), count(&one) + count(&two));
    let times: Vec<f64> = merged.lines().map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
    assert_eq!(times[0], 0.0);
}

#[test]
fn invalid_arguments_are_refused_with_a_remedy() {
    let capture = capture();
    let folder = Folder::new();
    for (code, args, parts) in [
        (2, &["cut", &capture][..], &["--from, --to, --process, --sectors or --device"][..]),
        (2, &["cut", &capture, "--from", "2", "--to", "1"], &["--to is not after --from"]),
        (2, &["cut", &capture, "--from", "1.5x"], &["`1.5x` is no time", "ns, us, ms or s"]),
        (2, &["cut", &capture, "--sectors", "9-1"], &["9 is after 1"]),
        (2, &["cut", &capture, "--device", "sda"], &["major and minor number of a device, as in 8,0"]),
        (2, &["merge", &capture, "--shift", "0,1"], &["--shift has 2 times for 1 traces"]),
        (2, &["convert", &capture, "--as", "blktrace-cpus"], &["name them with -o"]),
        (2, &["convert", &capture, "-o", "x.csv.gz"], &["the output is not compressed"]),
        (2, &["convert", &capture, "--as", "xml"], &["invalid value 'xml'", "perfetto"]),
        (1, &["convert", "/not/there"], &["/not/there: there is no such file"]),
    ] {
        run(&[&["trace"], args].concat()).refused(code, parts);
    }
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn invalid_traces_are_refused_with_place_and_remedy() {
    let folder = Folder::new();
    let packed = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).expect("memory takes everything");
        gzip.finish().expect("memory takes everything")
    };
    for (contents, parts) in [
        (Vec::new(), &["trace: unknown trace format: it is empty"][..]),
        (b"hello\n".to_vec(), &["its first line is \"hello\""]),
        (packed(&vec![0; 8 << 20]), &["its first 65536 bytes are zeros"]),
        (b"BZh91AY&SY".to_vec(), &["unpack it first (bzip2)"]),
        (
            b"5,hm,1,Read,0,4096,413\n6,hm,1,Read,0,4096,413\n".to_vec(),
            &["cannot determine the unit", "--time-unit", "with us"],
        ),
        (b"fio version 1 iolog\n".to_vec(), &["iolog of version \"1\": supported are 2 and 3"]),
        ([0x05, 0x74, 0x61, 0x65, 0, 0, 0, 0].to_vec(), &["records of blktrace version 5: supported are 7 and 8"]),
    ] {
        let file = folder.file("trace", contents);
        run(&["trace", "convert", &file]).refused(1, parts);
    }
    let wrong = folder.file("trace", "0 0 8 8 1\n10000 0 8 8 1\n20000 0 x 8 1\n");
    let ran = run(&["trace", "convert", &wrong, "-q", "--strict"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("trace:3: the sector \"x\" is no whole number"), "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 2, "what stands before the wrong line is written");
}

#[test]
fn an_output_that_is_read_or_full_is_an_error() {
    let folder = Folder::new();
    let table = folder.file("a.csv", printed(&["trace", "convert", &capture(), "--as", "csv"]));
    run(&["trace", "convert", &table, "-o", &table]).refused(1, &["it is an input and would be overwritten"]);
    run(&["trace", "cut", &table, "--to", "1", "-o", "/dev/full"]).refused(1, &["/dev/full", "No space left"]);
    let sh = format!("{} trace convert {table} -q | head -n 1", env!("CARGO_BIN_EXE_hoistway"));
    let cut_off = Command::new("sh").args(["-c", &sh]).output().expect("sh is there");
    assert_eq!(
        (cut_off.stdout.iter().filter(|byte| **byte == b'\n').count(), cut_off.stderr.as_slice()),
        (1, &b""[..])
    );
}

#[test]
fn a_part_without_events_is_an_error() {
    let ran = run(&["trace", "cut", &capture(), "--from", "1000", "-q"]);
    ran.refused(1, &["the result has no events"]);
}

/// The records of the capture's first CPU.
fn records() -> Vec<u8> {
    let folder = Folder::new();
    let name = folder.name("cpu");
    printed(&["trace", "convert", &sample("blktrace/vda-mq-deadline.blktrace.0.xz"), "--as", "blktrace", "-o", &name]);
    std::fs::read(name).expect("it was written")
}

#[test]
fn damaged_captures_are_read_with_notices() {
    let folder = Folder::new();
    let whole = records();
    let mut other = whole.clone();
    let mut foreign = whole.clone();
    let (mut at, mut places) = (0, Vec::new());
    while at < whole.len() {
        places.push(at);
        at += 48 + usize::from(u16::from_le_bytes([whole[at + 46], whole[at + 47]]));
    }
    // From the middle on records of another version, and of another device: 8,16.
    for place in &places[places.len() / 2..] {
        other[*place] = 5;
        foreign[*place + 36..*place + 40].copy_from_slice(&(8u32 << 20 | 16).to_le_bytes());
    }
    let file = |name: &str, contents: &[u8]| folder.file(name, contents);
    let has_notice = |trace: &str, says: &str| {
        let ran = run(&["trace", "describe", trace]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.err.contains(says) || ran.out.contains(says), "{says}: {}{}", ran.err, ran.out);
        for command in
            [&["trace", "view", trace, "-o", &folder.name("page.html")][..], &["trace", "convert", trace, "-q"]]
        {
            let ran = run(command);
            assert!(ran.code == Some(0) && !ran.err.contains("panicked"), "{command:?}: {}", ran.err);
        }
    };
    has_notice(&file("cut", &whole[..whole.len() - 20]), "the last record is cut off: ");
    has_notice(&file("other", &other), "bytes without a record were skipped (bytes: ");
    has_notice(&file("twice", &[&whole[..], &whole].concat()), "the clock of a CPU ran backwards once, by at most ");
    has_notice(&file("two", &foreign), "on 2 devices");
    file("cpus.blktrace.0", &whole);
    file("cpus.blktrace.1", b"");
    has_notice(&folder.name("cpus"), "cpus.blktrace.1: it is empty: nothing was recorded here");
    file("cpus.blktrace.0.gz", b"");
    run(&["trace", "describe", &folder.name("cpus")]).refused(1, &["cpus.blktrace.0.gz holds the same CPU"]);
}

#[test]
fn a_decompression_bomb_ends_soon_in_little_memory() {
    let folder = Folder::new();
    let packed = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(bytes).expect("memory takes everything");
        gzip.finish().expect("memory takes everything")
    };
    // 640 concatenated gzip members of 16 MiB each.
    let zeros = packed(&vec![0; 16 << 20]).repeat(640);
    let lines = packed(&vec![b'\n'; 16 << 20]).repeat(640);
    let behind = |head: &[u8], bomb: &[u8]| [&packed(head), bomb].concat();
    for (contents, says) in [
        (zeros.clone(), "its first 65536 bytes are zeros"),
        (behind(&records(), &zeros), "no record of blktrace in 16777216 bytes"),
        (behind(b"fio version 3 iolog\n0 /a add\n1 /a read 0 4096\n", &lines), "16 MiB without a record"),
        (behind(b"0 0 8 8 1\n90000 0 8 8 1\n", &zeros), "this line is longer than 64 KiB"),
    ] {
        let file = folder.file("bomb.gz", contents);
        // The process is limited to 60 s of CPU time and an address space of 256 MiB.
        let sh = format!(
            "ulimit -t 60; ulimit -v 262144; exec {} trace convert {file} -q -o /dev/null",
            env!("CARGO_BIN_EXE_hoistway")
        );
        let ran = Command::new("sh").args(["-c", &sh]).output().expect("sh is there");
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(1) && err.contains(says), "{says}: {} {err}", ran.status);
    }
}

#[test]
fn a_set_of_parquet_files_is_a_trace_for_every_command() {
    let folder = Folder::new();
    let (set, one, capture) = (folder.name("set"), folder.name("one.parquet"), capture());
    printed(&["trace", "convert", &capture, "--to", "parquet", "-o", &set, "--file-events", "1000"]);
    printed(&["trace", "convert", &capture, "-o", &one]);
    let glob = format!("{set}/events-*.parquet");
    assert!(std::fs::read_dir(&set).expect("the folder is there").count() > 3);
    let text = printed(&["trace", "convert", &capture, "-q", "--all-messages"]);
    let described = |trace: &str, name: &str| {
        let json = printed(&["trace", "describe", trace, "--json"]);
        json.replacen(&format!("\"trace\": \"{name}\""), "", 1)
    };
    let whole = described(&capture, "vda-mq-deadline");
    let cut = printed(&["trace", "cut", &capture, "--to", "0.5", "-q"]);
    for (trace, name) in [(&set, "set"), (&one, "one.parquet"), (&glob, "events-00000.parquet")] {
        assert!(printed(&["trace", "convert", trace, "-q", "--all-messages"]) == text, "{name}");
        assert!(described(trace, name) == whole, "{name}");
        assert!(printed(&["trace", "cut", trace, "--to", "0.5", "-q"]) == cut, "{name}");
        assert!(printed(&["trace", "info", trace]).contains("a Parquet file (parquet)"));
        printed(&["trace", "replay", trace, "--drive", "sata-7200-2006"]);
    }
    printed(&["trace", "view", &set, "-o", &folder.name("a.html")]);
    let sorted = folder.name("sorted");
    printed(&["trace", "reorder", &set, "--by", "sector", "--as", "parquet", "-o", &sorted]);
    printed(&["trace", "merge", &set, &one, "--as", "parquet", "-o", &folder.name("both")]);
    let bios = |trace: &str| lines(&printed(&["trace", "convert", trace, "-q"]), "Q").len();
    assert_eq!(bios(&folder.name("both")), 2 * lines(&text, "Q").len());
}

#[test]
fn parquet_output_and_damaged_sets_are_refused_with_a_remedy() {
    let folder = Folder::new();
    let (set, capture) = (folder.name("set"), capture());
    printed(&["trace", "convert", &capture, "--to", "parquet", "-o", &set, "--file-events", "1000"]);
    let refused = |code: i32, args: &[&str], parts: &[&str]| run(&[&["trace"], args].concat()).refused(code, parts);
    refused(2, &["convert", &capture, "--to", "parquet"], &["cannot go to standard output", "-o"]);
    refused(1, &["convert", &capture, "--to", "parquet", "-o", &set], &[&set, "not empty", "new or an empty folder"]);
    refused(2, &["convert", &capture, "--as", "csv", "--file-events", "5"], &["--as parquet -o FOLDER"]);
    refused(2, &["convert", &capture, "-o", "x.parquet", "--file-interval", "5"], &["--as parquet -o FOLDER"]);
    let empty = folder.name("empty");
    std::fs::create_dir(&empty).expect("it is created");
    refused(2, &["describe", &empty], &["a folder without Parquet files", "*.parquet"]);
    let part = format!("{set}/events-00002.parquet");
    let whole = std::fs::read(&part).expect("the part is there");
    std::fs::write(&part, &whole[..whole.len() - 100]).expect("it is written");
    refused(1, &["describe", &set], &["events-00002.parquet: its footer is missing", "PAR1", "copy or write it again"]);
    refused(1, &["whatif", &set], &["events-00002.parquet: its footer is missing"]);
    std::fs::remove_file(&part).expect("it is there");
    let ran = run(&["trace", "describe", &set]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("parts of its set are missing (2, counted from 0)"), "{}", ran.err);
}

#[test]
fn a_set_that_is_larger_than_memory_is_converted_and_described() {
    let folder = Folder::new();
    let (table, set) = (folder.name("requests.csv"), folder.name("set"));
    // 1.2 million requests, 2.4 million events: in memory more than 150 MB.
    let mut lines = std::io::BufWriter::new(std::fs::File::create(&table).expect("it is created"));
    for number in 0..1_200_000u64 {
        let kind = if number % 3 == 0 { "Write" } else { "Read" };
        let (ticks, offset) = (128_166_372_003_061_629 + number * 1000, number * 7919 % (1 << 28) * 4096);
        writeln!(lines, "{ticks},hm,1,{kind},{offset},4096,{}", 400 + number % 777).expect("it is written");
    }
    lines.into_inner().expect("it is written");
    // The address space of the process is limited to 128 MiB.
    let limited = |arguments: &str| {
        let sh = format!("ulimit -v 131072; exec {} trace {arguments}", env!("CARGO_BIN_EXE_hoistway"));
        let ran = Command::new("sh").args(["-c", &sh]).output().expect("sh is there");
        assert_eq!(ran.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    limited(&format!("convert {table} --to parquet -o {set} --file-interval 20"));
    assert_eq!(std::fs::read_dir(&set).expect("the folder is there").count(), 6, "120 s in intervals of 20 s");
    let described = limited(&format!("describe {set} --json"));
    let whole = limited(&format!("describe {table} --json"));
    let without_name = |json: &str| json.lines().filter(|line| !line.contains("\"trace\":")).collect::<String>();
    assert!(without_name(&described) == without_name(&whole));
    assert!(described.contains("\"requests\": 1200000"));
}
