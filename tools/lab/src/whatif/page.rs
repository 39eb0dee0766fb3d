//! Renders docs/whatif.md.

use std::fmt::Write;

use anyhow::{Context, Result};
use hoistway_workspace::repository;

use super::pairs::{Case, Pair, Question, Summary, percentile};

const PAGE: &str = "docs/whatif.md";

/// A goal with its measured value.
pub struct Goal {
    pub text: &'static str,
    pub found: String,
    pub holds: bool,
}

/// The data of the page.
pub struct Measured<'a> {
    /// Cases with the drive's own profile, with a profile fitted to the recording, with clients
    /// that wake up late, and in real time.
    pub given: Vec<Case>,
    pub fitted: Vec<Case>,
    pub waking: Vec<Case>,
    pub real: Vec<Case>,
    pub goals: &'a [Goal],
    pub seconds: u64,
    pub seeds: (u64, u64),
    /// Delay in us of a client for each doubling of the idle time before it.
    pub wake_us: u64,
    pub real_seconds: u64,
    /// When and on what the runs in real time were made.
    pub real_note: &'a str,
}

/// The goals for predictions with the drive's own profile.
pub fn goals(summary: &Summary) -> Vec<Goal> {
    let (throughput, p99) = (percentile(&summary.throughput, 0.5), percentile(&summary.p99, 0.5));
    let right = summary.as_good as f64 / summary.questions.max(1) as f64;
    vec![
        Goal {
            text: "pairs of recorded and predicted elevator: >= 40",
            found: summary.pairs.to_string(),
            holds: summary.pairs >= 40,
        },
        Goal {
            text: "median error of throughput per process: <= 10 %",
            found: percent(throughput),
            holds: throughput <= 0.1,
        },
        Goal { text: "median error of p99 latency per process: <= 25 %", found: percent(p99), holds: p99 <= 0.25 },
        Goal {
            text: "the elevator with the best prediction is within 2 % of the best measurement: >= 9 of 10",
            found: format!("{} of {} ({} are the best)", summary.as_good, summary.questions, summary.exact),
            holds: right >= 0.9,
        },
    ]
}

/// Writes the page.
pub fn write(measured: &Measured<'_>) -> Result<()> {
    let path = repository::root().join(PAGE);
    std::fs::write(&path, text(measured)).with_context(|| format!("cannot write {}", path.display()))
}

fn text(measured: &Measured<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = render(measured, &mut text);
    text
}

fn render(measured: &Measured<'_>, text: &mut String) -> std::fmt::Result {
    let Measured { seconds, seeds: (from, to), .. } = measured;
    writeln!(text, "# How good the predictions of `hoistway trace whatif` are\n")?;
    writeln!(
        text,
        "`cargo xtask whatif --write` writes this page. It measures how far the predictions of `hoistway trace whatif` are from measurements.\n\n\
         There are four kinds of workload. Seeds of a random number generator determine their clients:\n\n\
         - *streams*: several sequential readers\n\
         - *random-and-stream*: random readers beside sequential readers\n\
         - *database*: random readers, a process that writes batches, and a process that writes a log\n\
         - *thinker*: a sequential reader with longer [think times](glossary.md) among other sequential readers\n\n\
         Each workload runs for {seconds} s on the server's device with an emulated drive (`sata-7200-2006`) under one elevator, and is recorded. \
         From this recording alone, `trace whatif` predicts throughput and latency under the other {} elevators. \
         Then the workload runs under each of these elevators, and the predicted figures are compared with the measured ones. \
         A *pair* is the recorded elevator and a predicted one. The seeds on this page ({from} to {to}) were not used during the development of the predictions.\n",
        measured.given.iter().map(|case| case.pairs.len()).max().unwrap_or(0)
    )?;
    writeln!(
        text,
        "The measured runs use the server's device in virtual time, with the same elevators and the same drive model as the predicting simulator. \
         So if the drive is given (`--drive NAME`), the errors below come only from the inferred behaviour of the *processes*: \
         which earlier requests each request waited for, and how a process continues if the elevator serves more of its requests than were recorded. \
         With a real drive, the error of the drive model is added; [drives](drives.md) has its size.\n\n\
         Before it predicts, the command simulates the recorded elevator and compares the result with the recording. \
         The largest error of throughput or mean latency, of all processes together or of one process, is the *error of the model on the recording*. If it exceeds 20 %, the command refuses to predict. Predictions from traces of submissions alone have no recording to compare with and are not on this page.\n"
    )?;
    writeln!(
        text,
        "The error of a figure is |predicted / measured - 1|, for each process of each pair. If a process was predicted to be served and got no service, its error of throughput is infinite, \
         and it has no error of latency.\n"
    )?;
    writeln!(text, "| goal, with the drive given | measured | |\n|---|---|---|")?;
    for goal in measured.goals {
        writeln!(text, "| {} | {} | {} |", goal.text, goal.found, if goal.holds { "yes" } else { "**no**" })?;
    }
    text.push('\n');
    summaries(measured, text)?;
    best(&measured.given, text)?;
    real(measured, text)?;
    writeln!(text, "## Each recording with a fitted drive\n")?;
    writeln!(
        text,
        "With `--drive fit`, the command derives the profile of the drive from the recording itself. The recording must have reads that are far apart from each other. \
         Sequential streams alone do not have them; then the command refuses to predict.\n"
    )?;
    writeln!(
        text,
        "| workload | seed | recorded under | error of the model on the recording | error of throughput: median | worst | error of p99 latency: median | worst |\n|---|---|---|---|---|---|---|---|"
    )?;
    for case in &measured.fitted {
        let summary = Summary::of(std::slice::from_ref(case));
        let head = format!("| {} | {} | {} |", case.workload, case.seed, case.recorded);
        match &case.refused {
            Some(why) => writeln!(text, "{head} refused: {why} | | | | |")?,
            None => writeln!(
                text,
                "{head} {} |{}",
                percent(case.miss.unwrap_or(0.0)),
                errors(&summary.throughput, &summary.p99)
            )?,
        }
    }
    writeln!(text, "\n## Each pair with the drive given\n")?;
    measured.given.iter().try_for_each(|case| pairs(case, text))
}

fn summaries(measured: &Measured<'_>, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "| drive | recordings | refused | pairs | error of throughput per process: median | 90 % | error of p99 latency per process: median | 90 % | best prediction within 2 % of the best measurement |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
    let late = "given, clients that wake up late";
    let rows = [
        ("given (`--drive NAME`)", &measured.given),
        ("fitted (`--drive fit`)", &measured.fitted),
        (late, &measured.waking),
    ];
    for (what, cases) in rows.into_iter().filter(|(_, cases)| !cases.is_empty()) {
        let Summary { pairs, refused, cases, throughput, p99, questions, as_good, .. } = Summary::of(cases);
        let share = |figures: &[f64], share| percent(percentile(figures, share));
        writeln!(
            text,
            "| {what} | {cases} | {refused} | {pairs} | {} | {} | {} | {} | {as_good} of {questions} |",
            share(&throughput, 0.5),
            share(&throughput, 0.9),
            share(&p99, 0.5),
            share(&p99, 0.9)
        )?;
    }
    if !measured.waking.is_empty() {
        writeln!(
            text,
            "\nA client of a real machine continues later after a completion if the machine was idle before it: the processor left a deep idle state, and its caches are cold. \
             So the recording of an elevator that seeks before each request has longer think times than the runs of one that serves streams. \
             The command learns the think times as a function of the idle time. In the last row, a client continues {} us later with each doubling of the idle time above 0.1 ms.",
            measured.wake_us
        )?;
    }
    writeln!(text)
}

fn best(cases: &[Case], text: &mut String) -> std::fmt::Result {
    writeln!(text, "## Which elevator is best\n")?;
    writeln!(
        text,
        "There are two questions for each recording: which elevator transfers the most bytes, and under which elevator the largest p99 latency of a process is least. \
         *Predicted* is the elevator with the best prediction, *measured* the one with the best measurement. *Loss* is 1 - r, where r (at most 1) is the ratio of the measurements of these \
         two elevators. If several elevators are equally good, chance decides which of them is listed.\n"
    )?;
    writeln!(
        text,
        "| workload | seed | recorded under | most bytes: predicted | measured | loss | least p99 latency: predicted | measured | loss |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for case in cases {
        write!(text, "| {} | {} | {} |", case.workload, case.seed, case.recorded)?;
        for question in [Question::Throughput, Question::Latency] {
            match case.best(question) {
                Some((named, truly, part)) => write!(text, " {named} | {truly} | {} |", percent(1.0 - part))?,
                None => write!(text, " refused | | |")?,
            }
        }
        text.push('\n');
    }
    writeln!(text)
}

fn real(measured: &Measured<'_>, text: &mut String) -> std::fmt::Result {
    if measured.real.is_empty() {
        return Ok(());
    }
    let summary = Summary::of(&measured.real);
    let rounds = measured.real.chunk_by(is_repeated).map(<[Case]>::len).max().unwrap_or(0);
    let separator = if measured.real_note.is_empty() { "" } else { " " };
    writeln!(text, "## With a real server, in real time\n")?;
    writeln!(
        text,
        "The same comparison in real time: clients connect to the socket of `hoistway serve --drive sata-7200-2006 --record`, and `hoistway trace whatif` predicts from the recording. \
         Each run takes {} s, and each recording is made {rounds} times: there are {} pairs. The median error per process is {} for throughput and {} for p99 latency. \
         The initial angle of the drive's platters, the scheduling of the clients' threads and the other load of the machine differ from run to run.{separator}{}\n",
        measured.real_seconds,
        summary.pairs,
        percent(percentile(&summary.throughput, 0.5)),
        percent(percentile(&summary.p99, 0.5)),
        measured.real_note
    )?;
    writeln!(
        text,
        "The figures of MB/s are the medians of the runs, of all processes together; the errors per process are those of all runs.\n\n\
         If the machine does not run a client for some milliseconds, this stall counts as a think time of the request after it, and the prediction repeats it as often as the request. \
         The streams beside the thinker make four to nine times as many requests under `anticipatory` and `cfq` as in the recording, so a recording with stalls predicts too many of them: \
         another one, of 10 s with nine pauses of more than 2 ms, had errors of -9 %. A single pause can end the turn of a stream, so the errors per process are larger than those of the sum.\n"
    )?;
    measured.real.chunk_by(is_repeated).try_for_each(|repeated| repetitions(repeated, text))
}

/// Returns true if two cases are repetitions of the same recording.
fn is_repeated(a: &Case, b: &Case) -> bool {
    (&a.workload, a.seed, &a.recorded) == (&b.workload, b.seed, &b.recorded)
}

/// The repetitions of one recording.
fn repetitions(cases: &[Case], text: &mut String) -> std::fmt::Result {
    let Some(first) = cases.first() else { return Ok(()) };
    writeln!(text, "### {}, seed {}, recorded under {}\n", first.workload, first.seed, first.recorded)?;
    let held: Vec<&Case> = cases.iter().filter(|case| case.refused.is_none()).collect();
    if held.len() < cases.len() {
        let why = cases.iter().find_map(|case| case.refused.as_deref()).unwrap_or_default();
        writeln!(text, "Refused {} of {} times: {why}.\n", cases.len() - held.len(), cases.len())?;
    }
    let Some(usual) = held.first() else { return Ok(()) };
    let misses: Vec<String> = held.iter().map(|case| percent(case.miss.unwrap_or(0.0))).collect();
    writeln!(text, "The largest errors of the model on the recordings are {}.\n", misses.join(", "))?;
    writeln!(
        text,
        "| elevator | MB/s measured | predicted | error in each repetition | error: median | error of throughput per process: median | worst | error of p99 latency per process: median | worst |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for place in 0..usual.pairs.len() {
        let pairs: Vec<&Pair> = held.iter().filter_map(|case| case.pairs.get(place)).collect();
        let totals: Vec<(f64, f64)> = pairs.iter().map(|pair| pair.totals()).collect();
        let (measured, predicted): (Vec<f64>, Vec<f64>) = totals.iter().copied().unzip();
        let errors_of_totals: Vec<f64> =
            totals.iter().map(|(measured, predicted)| predicted / measured - 1.0).collect();
        let each: Vec<String> = errors_of_totals.iter().map(|error| format!("{:+.1} %", error * 100.0)).collect();
        let throughput: Vec<f64> = pairs.iter().flat_map(|pair| pair.throughput_errors()).collect();
        let p99: Vec<f64> = pairs.iter().flat_map(|pair| pair.p99_errors()).collect();
        writeln!(
            text,
            "| {} | {:.3} | {:.3} | {} | {:+.1} % |{}",
            usual.pairs[place].elevator,
            percentile(&measured, 0.5) / 1e6,
            percentile(&predicted, 0.5) / 1e6,
            each.join(", "),
            percentile(&errors_of_totals, 0.5) * 100.0,
            errors(&throughput, &p99)
        )?;
    }
    writeln!(text)
}

/// The pairs of one recording.
fn pairs(case: &Case, text: &mut String) -> std::fmt::Result {
    writeln!(text, "### {}, seed {}, recorded under {}\n", case.workload, case.seed, case.recorded)?;
    for client in &case.clients {
        writeln!(text, "- {client}")?;
    }
    if !case.clients.is_empty() {
        text.push('\n');
    }
    if let Some(why) = &case.refused {
        return writeln!(text, "Refused: {why}.\n");
    }
    writeln!(text, "The largest error of the model on the recording is {}.\n", percent(case.miss.unwrap_or(0.0)))?;
    writeln!(
        text,
        "| elevator | MB/s measured | predicted | error | error of throughput per process: median | worst | error of p99 latency per process: median | worst | process with the worst throughput error |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    for pair in &case.pairs {
        let (measured, predicted) = pair.totals();
        let (throughput, p99): (Vec<f64>, Vec<f64>) = (pair.throughput_errors().collect(), pair.p99_errors().collect());
        writeln!(
            text,
            "| {} | {:.3} | {:.3} | {:+.1} % |{} {} |",
            pair.elevator,
            measured / 1e6,
            predicted / 1e6,
            (predicted / measured - 1.0) * 100.0,
            errors(&throughput, &p99),
            worst(pair)
        )?;
    }
    writeln!(text)
}

fn errors(throughput: &[f64], p99: &[f64]) -> String {
    let both = [throughput, p99]
        .map(|errors| format!(" {} | {} |", percent(percentile(errors, 0.5)), percent(percentile(errors, 1.0))));
    both.concat()
}

/// The process with the largest error of throughput.
fn worst(pair: &Pair) -> String {
    let worst = pair.processes.iter().zip(pair.throughput_errors()).enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    worst.map_or(String::new(), |(index, (process, _))| format!("{} {}", process.name, index + 1))
}

fn percent(part: f64) -> String {
    if part.is_finite() { format!("{:.1} %", part * 100.0) } else { "infinite".into() }
}
