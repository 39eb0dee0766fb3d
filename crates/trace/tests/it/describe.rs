//! Compares statistics of captures with recorded output of blkparse and btt, and with live output
//! if both are installed.

use std::fs::{self, File};
use std::io::copy;
use std::path::{Path, PathBuf};
use std::process::Command;

use hoistway_trace::describe::{Describer, Description, Direction, Figures};
use hoistway_trace::{Batch, Input, OpenOptions, open};

/// Rows of `btt -i`: name, minimum, mean and maximum in s, and count.
struct Recorded {
    capture: &'static str,
    files: usize,
    rows: &'static [(&'static str, f64, f64, f64, u64)],
    /// Mean distance at Q and at D of `btt --seek-absolute`, which includes the distance of the
    /// first request from sector 0, and the number of distances of 0 (the mode).
    seeks: [(f64, u64, u64); 2],
    /// First submitted and first issued sector.
    first: [u64; 2],
    /// Summary of blkparse: queued, dispatched, completed, merged; each for reads (with flushes of
    /// the device) and writes, with KiB.
    summary: [[(u64, u64); 2]; 4],
    unplugs: (u64, u64),
}

const CAPTURES: [Recorded; 3] = [
    Recorded {
        capture: "vda-bfq",
        files: 2,
        rows: &[
            ("Q2Qdm", 0.000002200, 0.001281788, 0.022787400, 1559),
            ("Q2Cdm", 0.000281620, 0.018266629, 0.155465270, 1560),
            ("Q2G", 0.000004780, 0.003079001, 0.086112310, 1081),
            ("G2I", 0.000008200, 0.000175554, 0.007784920, 1081),
            ("Q2M", 0.000000690, 0.000001439, 0.000056970, 479),
            ("I2D", 0.000031020, 0.004898783, 0.082229770, 1082),
            ("M2D", 0.000098790, 0.002609180, 0.007695060, 479),
            ("D2C", 0.000110200, 0.011812383, 0.048282460, 1560),
        ],
        seeks: [(26470.4, 524, 1560), (30166.1, 58, 1081)],
        first: [0, 0],
        summary: [
            [(460, 3772), (1104, 5384)],
            [(464, 3772), (621, 5384)],
            [(464, 3772), (625, 5384)],
            [(0, 0), (479, 1916)],
        ],
        unplugs: (16, 324),
    },
    Recorded {
        capture: "vda-mq-deadline",
        files: 2,
        rows: &[
            ("Q2Qdm", 0.000002680, 0.001290331, 0.040384800, 1545),
            ("Q2Cdm", 0.000102980, 0.024781205, 0.188709100, 1545),
            ("Q2G", 0.000002040, 0.003318512, 0.097864790, 1071),
            ("G2I", 0.000001660, 0.000185741, 0.005601190, 1071),
            ("Q2M", 0.000000870, 0.000001544, 0.000173310, 475),
            ("I2D", 0.000005720, 0.004948082, 0.041411400, 1070),
            ("M2D", 0.000134600, 0.004500260, 0.030336150, 475),
            ("D2C", 0.000066500, 0.017553968, 0.073661650, 1544),
        ],
        seeks: [(17912.1, 573, 1546), (27779.5, 99, 1071)],
        first: [22024, 22024],
        summary: [
            [(470, 3308), (1080, 5036)],
            [(474, 3308), (601, 5036)],
            [(474, 3308), (605, 5036)],
            [(0, 0), (475, 1900)],
        ],
        unplugs: (16, 108),
    },
    Recorded {
        capture: "android-emmc",
        files: 1,
        rows: &[
            ("Q2Q", 0.000060735, 0.000359135, 0.130342651, 962),
            ("Q2G", 0.000000205, 0.000000287, 0.000001393, 963),
            ("D2C", 0.000052471, 0.000055949, 0.000102460, 963),
            ("Q2C", 0.000053029, 0.000056609, 0.000103591, 963),
        ],
        // The mode of btt is not 0; the sequential request was counted by hand.
        seeks: [(43322163.8, 1, 963), (43322163.8, 1, 963)],
        first: [2_348_060_440, 2_348_060_440],
        summary: [[(963, 3852), (0, 0)], [(963, 3852), (0, 0)], [(963, 3852), (0, 0)], [(0, 0), (0, 0)]],
        unplugs: (963, 0),
    },
];

/// Returns the correction of btt's sum in ns and of its count. btt 1.2 confuses requests of one
/// process that overlap. In vda-bfq, reads of 40 + 8 and 32 + 32 sectors are in the device at the
/// same time. The C of the former (0.021635220) is counted from the D of the latter (0.020483930)
/// instead of its own (0.020062650), which also adds one I2D (0.020483930 - 0.019543540). In
/// vda-mq-deadline, reads of 64 + 32 (D2C 2.417020 ms, Q2C 4.786250 ms) and 64 + 8 (4.354040 and
/// 4.556220 ms, I2D 0.186850 ms) become one: btt misses two D2C and counts one Q2C, from the Q of
/// the latter to the C of the former (0.159970 ms), instead of two.
fn correction(capture: &str, row: &str) -> (f64, i64) {
    match (capture, row) {
        ("vda-bfq", "I2D") => (-940_390.0, -1),
        ("vda-bfq", "D2C") => (421_280.0, 0),
        ("vda-mq-deadline", "D2C") => (2_417_020.0 + 4_354_040.0, 2),
        ("vda-mq-deadline", "Q2Cdm") => (4_786_250.0 + 4_556_220.0 - 159_970.0, 1),
        ("vda-mq-deadline", "I2D") => (186_850.0, 1),
        _ => (0.0, 0),
    }
}

fn packed(capture: &Recorded) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/blktrace");
    (0..capture.files).map(|cpu| folder.join(format!("{}.blktrace.{cpu}.xz", capture.capture))).collect()
}

fn describe(files: Vec<PathBuf>) -> Description {
    let mut source = open(files.into_iter().map(Input::Path).collect(), &OpenOptions::default()).unwrap();
    let (mut describe, mut batch) = (Describer::new(), Batch::new());
    loop {
        source.next(&mut batch).unwrap();
        if batch.is_empty() {
            return describe.finish();
        }
        describe.take(&batch);
    }
}

fn phase(description: &Description, row: &str) -> Figures {
    let phases = &description.all.phases;
    match row {
        "Q2Q" | "Q2Qdm" => phases.q2q_ns,
        "Q2C" | "Q2Cdm" => phases.q2c_ns,
        "Q2G" => phases.q2g_ns,
        "G2I" => phases.g2i_ns,
        "Q2M" => phases.q2m_ns,
        "I2D" => phases.i2d_ns,
        "M2D" => phases.m2d_ns,
        "D2C" => phases.d2c_ns,
        _ => unreachable!("{row}"),
    }
}

/// Selects the number of bios or requests of a direction, and their bytes.
type Pick = fn(&Direction) -> (u64, u64);

#[test]
fn counts_equal_those_of_blkparse_s_summary() {
    for capture in &CAPTURES {
        let description = describe(packed(capture)).counts;
        let kib = |bytes: u64| bytes >> 10;
        let pick: [Pick; 4] = [
            |of| (of.queued, of.queued_bytes),
            |of| (of.issued, of.issued_bytes),
            |of| (of.completed, of.completed_bytes),
            |of| (of.merged, of.merged_bytes),
        ];
        let summary = pick
            .map(|pick| [&description.reads, &description.writes].map(pick).map(|(count, bytes)| (count, kib(bytes))));
        assert_eq!(summary, capture.summary, "{}", capture.capture);
        assert_eq!((description.unplugs, description.timer_unplugs), capture.unplugs, "{}", capture.capture);
    }
}

#[test]
fn phases_equal_those_of_btt() {
    for capture in &CAPTURES {
        let description = describe(packed(capture));
        for (row, min, mean, max, count) in capture.rows {
            let ours = phase(&description, row);
            let (added_ns, added) = correction(capture.capture, row);
            let name = format!("{} {row}: {ours:?}", capture.capture);
            assert_eq!(ours.count as i64, *count as i64 + added, "{name}");
            assert_eq!((ours.min as f64 / 1e9, ours.max as f64 / 1e9), (*min, *max), "{name}");
            let right_ns = (mean * 1e9 * *count as f64 + added_ns) / ours.count as f64;
            assert!((ours.mean - right_ns).abs() < 2.0, "{name}: {right_ns}");
        }
    }
}

#[test]
fn distances_equal_those_of_btt() {
    for capture in &CAPTURES {
        let description = describe(packed(capture));
        for ((ours, (mean, sequential, count)), first) in
            [description.all.seeks, description.seeks_at_d].iter().zip(capture.seeks).zip(capture.first)
        {
            let far = &ours.distance_sectors;
            let with_first = (far.mean * far.count as f64 + first as f64) / (far.count + 1) as f64;
            assert_eq!((far.count + 1, ours.sequential + u64::from(first == 0)), (count, sequential));
            assert!((with_first - mean).abs() < 0.1, "{}: {with_first} {mean}", capture.capture);
        }
    }
}

#[test]
fn recorded_rows_equal_the_output_of_btt() {
    for capture in &CAPTURES {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, file) in packed(capture).iter().enumerate() {
            let to = folder.path().join(format!("disk.blktrace.{cpu}"));
            // blkparse expects the records of a CPU in the file of that CPU: android-emmc has CPU
            // 1.
            let to = if capture.files == 1 { folder.path().join("disk.blktrace.1") } else { to };
            let mut from = liblzma::read::XzDecoder::new(File::open(file).unwrap());
            copy(&mut from, &mut File::create(to).unwrap()).unwrap();
        }
        if capture.files == 1 {
            fs::write(folder.path().join("disk.blktrace.0"), []).unwrap();
        }
        let run = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).current_dir(folder.path()).output().ok()
        };
        let Some(_) = run("blkparse", &["-q", "-i", "disk", "-O", "-d", "disk.bin"]) else {
            eprintln!("SKIPPED: blkparse does not run here; Debian has it in the package blktrace");
            return;
        };
        let Some(output) = run("btt", &["-i", "disk.bin"]) else {
            eprintln!("SKIPPED: btt does not run here; Debian has it in the package blktrace");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for (row, min, mean, max, count) in capture.rows {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(row)).expect(&text);
            let printed: Vec<f64> = line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
            assert_eq!(printed, [*min, *mean, *max, *count as f64], "{}: {line}", capture.capture);
        }
    }
}

#[test]
fn processes_and_depths_are_described() {
    let description = describe(packed(&CAPTURES[0]));
    let bytes: u64 = description.processes.iter().map(|process| process.part.mix.bytes()).sum();
    assert_eq!(bytes, description.all.mix.bytes());
    assert_eq!(bytes, (3772 + 5384) << 10);
    let bios: u64 = description.processes.iter().map(|process| process.part.bios).sum();
    assert_eq!((bios, description.all.bios, description.all.mix.flushes), (1564, 1564, 4));
    assert!(description.processes.iter().all(|process| process.name == "load"), "{:?}", description.processes);
    assert!(description.processes.windows(2).all(|pair| pair[0].part.mix.bytes() >= pair[1].part.mix.bytes()));
    assert_eq!(description.all.unfinished, 0);
    // Little's law: the mean number of requests in the device is their total time there divided by
    // the duration. Phases count bios, of which a merged request has several.
    let depth = description.depth.in_device_over_time.mean;
    assert!(
        depth > 1.0 && depth < description.all.phases.d2c_ns.mean * 1560.0 / description.duration_ns as f64,
        "{depth}"
    );
    assert!(description.notes["bfq"].values().sum::<u64>() > 20_000, "{:?}", description.notes);
}
