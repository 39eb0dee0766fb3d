//! The model against recorded requests of a real drive, request by request.

use hoistway_drive::fit::fit_rotation;
use hoistway_drive::recording::Record;
use hoistway_drive::replay::{Prediction, PredictionErrors, replay};
use hoistway_drive::validation::validate;
use hoistway_drive::{Drive, Profile};

use crate::recorded::recorded;

/// 10,000 requests to a Cheetah 15K.5 with its buffer off.
fn cheetah() -> Vec<Record> {
    recorded("cheetah15k5")
}

fn profile() -> Profile {
    Profile::builtin("cheetah15k5_146").expect("built in")
}

/// The errors of requests that follow another within 1 ms.
fn at_once(predictions: &[Prediction]) -> PredictionErrors {
    PredictionErrors::of(predictions.iter().filter(|prediction| prediction.idle_ns < 1_000_000))
}

#[test]
fn recorded_requests_of_a_cheetah_15k5_are_predicted_one_by_one() {
    let recording = cheetah();
    let fit = fit_rotation(&profile().without_buffer(), &recording).expect("a fit");
    let validation = validate(&profile().without_buffer(), &recording).expect("a replay");
    println!("revolution {:.2} ns, coherence {:.4}", fit.revolution_ns, fit.coherence);
    let parts = [("all", validation.all), ("at once", validation.at_once), ("after a pause", validation.after_pause)];
    let zones = validation.zones.iter().enumerate().map(|(zone, errors)| (format!("zone {zone}"), *errors));
    for (part, errors) in parts.map(|(part, errors)| (part.to_string(), errors)).into_iter().chain(zones) {
        println!("{part}: {errors:.3?}");
    }
    // Half of the requests within 0.05 ms of 6 ms, and the angle of nearly every completion as
    // computed.
    assert!(validation.all.median_ms < 0.05 && fit.coherence > 0.96, "{validation:?}");
    // Requests that follow at once: 0.8 ms at most; a guessed rotation yields 1.63 ms.
    assert!(validation.at_once.rms_ms < 0.8, "{:?}", validation.at_once);
    // After a pause the drive has sometimes moved the arm to verify what it wrote since the last
    // pause. The model follows that for one written position (19 of 20 requests after it are right)
    // and partly for more (3 of 5), in an order that no rule tried here reproduces. The overall
    // error therefore exceeds 0.8 ms. DiskSim's demerit is 0.297 ms.
    assert!(validation.all.rms_ms < 1.15 && validation.all.demerit_ms < 0.25, "{:?}", validation.all);
    assert_eq!((fit.rms_ms, fit.coherence), (validation.all.rms_ms, validation.coherence));
}

/// The demerit (RMS horizontal distance of the distributions of service times) of the older drives
/// with buffers on is at most 1.5 times that of DiskSim with its own parameters and the same
/// recordings. A comparison by request is impossible: the pauses were not recorded to the
/// microsecond, so the angle of the platter is lost between requests.
#[allow(clippy::approx_constant, reason = "0.318 ms is a measurement")]
#[test]
fn distributions_of_recorded_drives_are_reproduced() {
    let mut missed = Vec::new();
    for (profile, recording, disksim_us, reached_us) in [
        ("barracuda_st32171w", "barracuda", 349.0, 350.0),
        ("atlas_III", "atlas_III", 378.0, 275.0),
        ("cheetah4LP", "cheetah4LP", 318.0, 360.0),
        ("ibm18es", "ibm18es", 135.0, 145.0),
        ("hp_c3323a", "hp_c3323a", 306.0, 400.0),
    ] {
        let profile = Profile::builtin(profile).expect("built in");
        let validation = validate(&profile, &recorded(recording)).expect("a replay");
        let demerit_us = validation.all.demerit_ms * 1e3;
        println!("{recording}: {:.3?}, coherence {:.3}", validation.all, validation.coherence);
        if demerit_us > reached_us || demerit_us > 1.5 * disksim_us {
            missed.push(format!("{recording}: {demerit_us} us, not {reached_us}"));
        }
        let (first, last) = (validation.curve.first(), validation.curve.last());
        assert!(first.is_some_and(|point| point.share == 0.0) && last.is_some_and(|point| point.share == 1.0));
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn guessed_rotation_is_far_worse() {
    let recording = cheetah();
    let fitted = fit_rotation(&profile().without_buffer(), &recording).expect("a fit");
    let tenths = (0..10).flat_map(|tenth| {
        // With an error of 1 % the platter turns past the recording 300 times, so every phase is
        // equally good.
        let guessed = profile().without_buffer().with_rotation(fitted.revolution_ns * 1.01, f64::from(tenth) / 10.0);
        replay(&guessed, &recording).expect("a replay")
    });
    let guessed = tenths.collect::<Vec<_>>();
    let (all, at_once) = (PredictionErrors::of(&guessed), at_once(&guessed));
    println!("guessed: {all:.3?}");
    assert!(at_once.rms_ms > 1.55 && all.median_ms > 0.9, "{all:?}, {at_once:?}");
}

#[test]
fn fit_finds_a_revolution_that_is_off_by_parts_in_ten_thousand() {
    let recording = cheetah();
    let found = fit_rotation(&profile().without_buffer(), &recording).expect("a fit").revolution_ns;
    for part in [-3e-4, -1e-4, 2e-4, 3e-4] {
        let start = profile().with_rotation(found * (1.0 + part), 0.7);
        let again = fit_rotation(&start.without_buffer(), &recording).expect("a fit").revolution_ns;
        assert!((again / found - 1.0).abs() < 1e-6, "{again} ns from {part}, not {found}");
    }
    // 0.0168 % longer than 60/15020 s.
    assert!((found / (6e10 / 15_020.0) - 1.000_168).abs() < 2e-6, "{found}");
}

#[test]
fn fit_recovers_the_rotation_of_a_simulated_recording() {
    // The same requests served by the model with another revolution and phase: every prediction
    // must be exact.
    let truth = profile().without_buffer().with_rotation(3_995_000.25, 0.123);
    let mut issue_ns = 0;
    let mut recording = cheetah();
    recording.truncate(3000);
    let gaps: Vec<u64> = recording.windows(2).map(|w| w[1].issue_ns - w[0].issue_ns - w[0].service_ns).collect();
    let mut drive = Drive::new(&truth);
    for (record, gap_ns) in recording.iter_mut().zip(gaps.into_iter().chain([0])) {
        record.issue_ns = issue_ns;
        let finish_ns = drive.serve(issue_ns, record.access).expect("within the drive").service.finish_ns;
        record.service_ns = finish_ns - issue_ns;
        issue_ns = finish_ns + gap_ns;
    }
    let fit = fit_rotation(&profile().without_buffer(), &recording).expect("a fit");
    assert!((fit.revolution_ns - 3_995_000.25).abs() < 0.1, "{}", fit.revolution_ns);
    assert!((fit.phase_revolutions - 0.123).abs() < 0.003, "{}", fit.phase_revolutions);
    assert!(fit.coherence > 0.999_9 && fit.rms_ms < 0.2, "{fit:?}");
}
