//! Advice and searches, compared with direct simulations.

use std::sync::atomic::AtomicBool;

use hoistway_advise::device_facts::usual_host;
use hoistway_advise::tune::Space;
use hoistway_advise::{
    Advice, AdviceRequest, AdviseError, Bench, Choice, Objective, TuneRequest, TuneResult, Use, Verdict, Workload,
    advise, tune,
};
use hoistway_compare::MIN_DIFFERENCE;
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, compare};

/// A disk with one command at a time, one that queues, and a volume without an arm.
const DRIVES: [&str; 3] = ["sata-7200-2006", "cmr-4tb", "cloud-gp3"];
/// Short runs, because the tests check the evaluation.
const SECONDS: u64 = 1;

fn profile(name: &str) -> Profile {
    Profile::builtin(name).expect("a built-in drive")
}

fn bench(text: &str, drive: &str) -> Bench {
    let jobs = hoistway_fio::parse(text, "test.fio", &|_| None, &|_, _| unreachable!("nothing is included"))
        .expect("a job file");
    Bench { workload: Workload::Jobs(jobs), profile: profile(drive), host: usual_host() }
}

fn request(bench: Bench, objective: &str, seeds: u32) -> AdviceRequest {
    let objective = Objective::parse(objective, &bench.job_names()).expect("an objective");
    AdviceRequest {
        bench,
        now: Choice::plain(Kind::MqDeadline),
        choices: KINDS.map(Choice::plain).into(),
        for_comparison: Vec::new(),
        objective,
        seeds,
        seed: 1,
        min_difference: MIN_DIFFERENCE,
    }
}

fn advice(request: &AdviceRequest) -> Advice {
    advise(request, &|_, _| {}, &AtomicBool::new(false)).expect("advice")
}

/// The advice as text.
fn summary(advice: &Advice) -> String {
    let spreads: Vec<_> = advice.judged.iter().map(|judged| (judged.choice.name(), judged.spreads.clone())).collect();
    format!("{:?} {} {} {} {spreads:?}", advice.verdict, advice.chosen, advice.because, advice.why)
}

/// Schedulers with different results from the first second on, although bfq favours new readers.
const KINDS: [Kind; 4] = [Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::CfqV3];

/// Streams that share a disk badly in turns, and well under CFQ.
const STREAMS: &str =
    "[stream]\nrw=read\nbs=128k\nsize=1g\nnumjobs=4\ndirect=1\nioengine=psync\ntime_based\nruntime=2\n";

#[test]
fn every_use_gets_the_same_answer_twice_on_every_kind_of_drive() {
    for drive in DRIVES {
        for use_ in Use::ALL {
            let (jobs, _) = use_.jobs_for(SECONDS).expect("a job file");
            let bench = Bench { workload: Workload::Jobs(jobs), profile: profile(drive), host: usual_host() };
            let choices = vec![Choice::plain(Kind::MqDeadline), Choice::plain(Kind::Bfq)];
            let request = AdviceRequest { choices, ..request(bench, use_.info().objective, 2) };
            assert_eq!(summary(&advice(&request)), summary(&advice(&request)), "{} on {drive}", use_.name());
        }
    }
}

#[test]
fn the_advice_is_the_best_elevator_of_a_comparison() {
    let request = request(bench(STREAMS, "sata-7200-2006"), "throughput max", 3);
    let advice = advice(&request);
    let Workload::Jobs(jobs) = &request.bench.workload else { panic!("jobs") };
    let mut rates = KINDS.map(|_| 0.0);
    for seed in &advice.seeds {
        let compared = compare(
            &CompareRequest {
                jobs: jobs.clone(),
                profile: request.bench.profile.clone(),
                host: request.bench.host.clone(),
                elevators: KINDS.into(),
                settings: Vec::new(),
                seed: *seed,
                record: false,
            },
            &|_| {},
            &AtomicBool::new(false),
        );
        let runs = compared.expect("a comparison").runs;
        rates.iter_mut().zip(runs).for_each(|(rate, run)| *rate += run.bytes_per_s / advice.seeds.len() as f64);
    }
    let best = (0..KINDS.len()).max_by(|one, other| rates[*one].total_cmp(&rates[*other])).expect("one");
    assert_eq!(advice.verdict, Verdict::Change, "{}", advice.because);
    assert_eq!(advice.judged[advice.chosen].choice, Choice::plain(KINDS[best]), "{rates:?}");
    for (judged, rate) in advice.judged.iter().zip(rates) {
        assert!((judged.spreads[0].mean / rate - 1.0).abs() < 1e-9, "{}", judged.choice.name());
    }
    let checked = advice.checked.expect("a change is checked");
    assert!(checked.holds && checked.seeds.iter().all(|seed| !advice.seeds.contains(seed)));
}

#[test]
fn settings_without_a_gain_are_kept() {
    let alone = "[alone]\nrw=read\nbs=128k\nsize=1g\ndirect=1\nioengine=psync\ntime_based\nruntime=1\n";
    let advice = advice(&request(bench(alone, "sata-7200-2006"), Objective::USUAL, 3));
    assert_eq!((advice.verdict, advice.chosen), (Verdict::Leave, advice.now));
    assert!(advice.because.contains("significantly"), "{}", advice.because);
    assert!(advice.checked.is_none());
}

#[test]
fn a_constraint_excludes_the_best_choice_of_the_goal() {
    let free = advice(&request(bench(STREAMS, "sata-7200-2006"), "throughput max", 2));
    let chosen = &free.judged[free.chosen];
    let p99 =
        hoistway_advise::value_text(chosen.runs[0].jobs[0].p99_ns * 0.5, hoistway_advise::Unit::Time).replace(' ', "");
    let bound = advice(&request(bench(STREAMS, "sata-7200-2006"), &format!("throughput max, p99 <= {p99}"), 2));
    let ruled_out = bound.judged.iter().find(|judged| judged.choice == chosen.choice).expect("it was judged");
    assert_eq!(ruled_out.broken.len(), 1, "p99 <= {p99}");
    assert_ne!(bound.judged[bound.chosen].choice, chosen.choice);
}

#[test]
fn a_choice_for_comparison_is_simulated_and_never_chosen() {
    let request = AdviceRequest {
        choices: vec![Choice::plain(Kind::MqDeadline)],
        for_comparison: vec![Choice::plain(Kind::Anticipatory)],
        ..request(bench(STREAMS, "sata-7200-2006"), "throughput max", 2)
    };
    let advice = advice(&request);
    assert_eq!((advice.verdict, advice.chosen), (Verdict::Leave, 0));
    let [now, compared] = advice.judged.as_slice() else { panic!("two") };
    assert!(compared.spreads[0].mean > 1.5 * now.spreads[0].mean && !compared.can_be_set);
    assert_eq!(advice.because, "nothing else could be set");
}

#[test]
fn one_seed_shows_no_spread() {
    let refused =
        advise(&request(bench(STREAMS, "sata-7200-2006"), "throughput max", 1), &|_, _| {}, &AtomicBool::new(false));
    assert!(matches!(refused, Err(AdviseError::Seeds { seeds: 1 })));
}

#[test]
fn a_cancelled_request_ends_with_an_error() {
    let ended =
        advise(&request(bench(STREAMS, "sata-7200-2006"), "throughput max", 2), &|_, _| {}, &AtomicBool::new(true));
    assert!(ended.expect_err("it ends").is_cancelled());
}

fn tuned(space: Space, evaluations: usize) -> TuneResult {
    // Readers that think for as long as bfq idles, so that idling decides.
    let text =
        "[reader]\nrw=randread\nbs=4k\nsize=1g\nnumjobs=3\ndirect=1\nioengine=psync\nthinktime=300\nnumber_ios=150\n";
    let bench = bench(text, "cloud-gp3");
    let objective = Objective::parse("throughput max", &bench.job_names()).expect("an objective");
    let now = Choice::plain(Kind::Bfq);
    let request = TuneRequest { bench, now, spaces: vec![space], objective, seed: 1, evaluations: Some(evaluations) };
    tune(&request, &|| false, &|_| {}, &AtomicBool::new(false)).expect("a search")
}

#[test]
fn a_search_finds_the_optimum_of_an_exhaustive_one() {
    let space = Space::of(Kind::Bfq).only(&["slice_idle", "strict_guarantees"]);
    let points = space.points();
    let found = tuned(space.clone(), points / 2);
    assert!(found.tried.len() <= points / 2 + 1, "{} of {points}", found.tried.len());
    let everything = tuned(space, 10 * points);
    assert_eq!(everything.tried.len(), points, "all of it");
    let best = |tuned: &TuneResult| tuned.tried.iter().map(|tried| tried.spreads[0].mean).fold(0.0, f64::max);
    assert!(best(&found) >= 0.99 * best(&everything), "{} and {}", best(&found), best(&everything));
}

#[test]
fn the_same_search_gives_the_same_answer() {
    let of = || {
        let tuned = tuned(Space::of(Kind::Bfq), 30);
        let tried: Vec<String> = tuned.tried.iter().map(|tried| tried.choice.name()).collect();
        (tuned.winner, tried, tuned.front)
    };
    assert_eq!(of(), of());
}

#[test]
fn the_winner_is_checked_on_further_seeds_and_drops_tunables_without_effect() {
    let tuned = tuned(Space::of(Kind::Bfq).only(&["back_seek_max", "fifo_expire_async"]), 24);
    // Reads one at a time: neither matters.
    assert!(tuned.winner.is_plain(), "{}", tuned.winner.name());
    assert_eq!(tuned.verdict, Verdict::Leave);
    assert!(!tuned.holds.is_significant);
}

#[test]
fn a_bounded_job_does_not_lower_the_total_of_other_jobs() {
    // The stream runs for 2 s; the reader has its work done after far longer.
    let text = "[stream]\nrw=read\nbs=128k\nsize=1g\ndirect=1\ntime_based\nruntime=2\n\
                [reader]\nrw=randread\nbs=4k\nsize=8g\nnumber_ios=600\ndirect=1\n";
    let beside = bench(text, "sata-7200-2006");
    let figures = Objective::parse(
        "throughput max, throughput(stream) max, throughput(reader) max, time min",
        &["stream", "reader"],
    )
    .expect("an objective")
    .figures();
    let runs = beside
        .measure(&[Choice::plain(Kind::MqDeadline)], &[1], &figures, &|_, _| {}, &AtomicBool::new(false))
        .expect("a run");
    let [total, stream, reader, time_ns] = runs[0][0].figures[..] else { panic!("{:?}", runs[0][0].figures) };
    assert!(time_ns > 3e9, "the reader goes on alone: {time_ns}");
    assert!((total - stream - reader).abs() < 1.0, "{total} is not {stream} and {reader}");
}
