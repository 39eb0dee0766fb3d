//! The points of a sweep.

use std::collections::HashSet;

use hoistway_core::{CustomElevator, CustomRequest, Info, QueueView, RequestId};
use hoistway_sweep::{Key, Plan, Point, PointId, Value};

use crate::plan;

const BASE: &str = "drives = [\"sata-7200-2006\"]\nelevators = [\"cfq\", \"bfq\", \"noop\"]\n";

fn ids(plan: &Plan) -> Vec<PointId> {
    (0..plan.points()).map(|number| Point::new(plan.spec(), &plan.choice(number).unwrap()).id).collect()
}

#[test]
fn a_tunable_varies_for_its_elevator_only() {
    let plan =
        plan(&format!("{BASE}seeds = \"1-2\"\n[vary]\n\"cfq.slice_idle\" = [0, 2, 8]\n\"bfq.slice_idle\" = [0, 8]\n"));
    // cfq 3, bfq 2, noop 1, each with two seeds.
    assert_eq!(plan.points(), 12);
    assert_eq!(ids(&plan).into_iter().collect::<HashSet<_>>().len(), 12);
    let cfq = Key::parse("cfq.slice_idle").unwrap();
    for number in 0..plan.points() {
        let choice = plan.choice(number).unwrap();
        let is_cfq = choice.elevator == 0;
        assert_eq!(choice.values.iter().any(|chosen| chosen.key == cfq), is_cfq);
    }
    assert_eq!(plan.choice(12), None);
}

#[test]
fn rows_of_points_are_set_together() {
    let rest = "[[points]]\n\"cfq.slice_idle\" = 0\n\"job.reader.numjobs\" = 2\n\
                [[points]]\n\"cfq.slice_idle\" = 8\n\"job.reader.numjobs\" = 2\n";
    let plan = plan(&format!("{BASE}{rest}"));
    // Without slice_idle both rows are one.
    assert_eq!(plan.points(), 2 + 1 + 1);
}

#[test]
fn names_of_points_depend_on_contents_only() {
    let with = |rest: &str| ids(&plan(&format!("{BASE}[vary]\n\"cfq.slice_sync\" = {rest}\n")));
    // The unit does not matter, nor the order.
    let (one, other) = (with("[100, 50]"), with("[\"0.05s\", \"100ms\"]"));
    assert_eq!(one.iter().collect::<HashSet<_>>(), other.iter().collect::<HashSet<_>>());
    assert_ne!(one, other);
    let shorter = ids(&plan(&format!("{BASE}scale = 0.5\n")));
    assert!(shorter.iter().all(|id| !ids(&plan(BASE)).contains(id)));
}

/// A custom elevator that never runs.
struct Unused;

impl CustomElevator for Unused {
    fn insert(&mut self, _: &mut QueueView, _: &CustomRequest) {}
    fn dispatch(&mut self, _: &mut QueueView) -> Option<RequestId> {
        None
    }
}

#[test]
fn names_of_points_change_with_the_version_of_a_custom_elevator() {
    let of_version = |version| {
        let info = Info::custom("versioned", version, "For a test");
        hoistway_custom::register(info, |_| Box::new(Unused)).expect("a usable name");
        ids(&plan("drives = [\"null\"]\nelevators = [\"versioned\", \"noop\"]\n"))
    };
    let [first, again, second] = [of_version("1"), of_version("1"), of_version("2")];
    assert_eq!(first, again, "the version stands for the elevator");
    assert_ne!(first[0], second[0]);
    assert_eq!(first[1], second[1], "other elevators keep their results");
}

#[test]
fn samples_are_drawn_from_lists_and_ranges_and_repeatable() {
    let sample = |seed: u32| {
        plan(&format!(
            "{BASE}seeds = [1, 2]\nsample = {{ count = 200, seed = {seed} }}\n[vary]\n\
             \"cfq.quantum\" = {{ min = 1, max = 64, scale = \"log\" }}\n\"job.reader.numjobs\" = [1, 2, 4]\n"
        ))
    };
    let plan = sample(1);
    assert_eq!(plan.points(), 400);
    let quantum = Key::parse("cfq.quantum").unwrap();
    let mut values = Vec::new();
    for number in 0..plan.points() {
        let choice = plan.choice(number).unwrap();
        values.extend(choice.values.into_iter().filter(|chosen| chosen.key == quantum).map(|chosen| chosen.value));
    }
    let numbers: Vec<i64> =
        values.iter().map(|value| if let Value::Int(number) = value { *number } else { 0 }).collect();
    assert!(numbers.iter().all(|number| (1..=64).contains(number)), "{numbers:?}");
    // Half of the logarithms are below that of 8.
    let below = numbers.iter().filter(|number| **number < 8).count() * 2;
    assert!(below > numbers.len() * 3 / 4 && below < numbers.len() * 5 / 4, "{below} of {}", numbers.len());
    assert_eq!(ids(&plan), ids(&sample(1)));
    assert_ne!(ids(&plan), ids(&sample(2)));
    // Both seeds have the same choices.
    let (one, other) = (plan.choice(0).unwrap(), plan.choice(1).unwrap());
    assert_eq!((one.seed, other.seed, &one.values), (1, 2, &other.values));
}

#[test]
fn too_many_points_are_refused() {
    let numbers: Vec<String> = (1..=10_000).map(|number| number.to_string()).collect();
    let list = numbers.join(", ");
    let text =
        crate::text(&format!("{BASE}[vary]\n\"job.reader.numjobs\" = [{list}]\n\"job.writer.numjobs\" = [{list}]\n"));
    let spec = hoistway_sweep::SweepSpec::from_toml(&text, "sweep.toml", std::path::Path::new("")).unwrap();
    assert!(Plan::new(spec).unwrap_err().to_string().contains("more than 100000000 points"));
}
