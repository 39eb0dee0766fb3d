//! The numbers against models of a kernel that caches inodes, and of a file system that gives the
//! number of a deleted inode to the next file at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A node of one inode that ever existed.
#[derive(Debug)]
struct TestNode {
    place: Place,
    number: Number,
    identity: u32,
}

impl Numbered for TestNode {
    fn place(&self) -> Place {
        self.place
    }

    fn number(&self) -> Number {
        self.number
    }
}

/// The places of two mounts. An inode of the second mount has the number of one of the first, and
/// one inode has no number of its own.
const PLACES: [Place; 5] = [
    Place { mount: 0, inode: 11, own: Some(11) },
    Place { mount: 0, inode: 12, own: Some(12) },
    Place { mount: 0, inode: 1, own: None },
    Place { mount: 1, inode: 5, own: Some(12) },
    Place { mount: 1, inode: 6, own: Some(13) },
];

/// The kernel, the file system below, and the table between them.
struct World {
    table: NumberTable<TestNode>,
    /// The inode at each place.
    live: [Option<u32>; PLACES.len()],
    next_identity: u32,
    /// The inodes in the kernel's cache by number: identity and lookup count.
    held: BTreeMap<u64, (u32, u64)>,
    /// Numbers that were renewed.
    renewed: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The kernel looks up the inode at a place.
    LookUp(usize),
    /// The inode at a place is deleted, and another one created there.
    Replace(usize),
    Delete(usize),
    /// The kernel forgets a cached inode: all lookups, or one of them.
    Forget(usize, bool),
    Renew(usize),
}

impl World {
    fn new() -> World {
        let live = std::array::from_fn(|at| Some(at as u32));
        let next_identity = live.len() as u32;
        World { table: NumberTable::new(), live, next_identity, held: BTreeMap::new(), renewed: Vec::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::LookUp(at) => self.look_up(at),
            Step::Delete(at) => self.live[at] = None,
            Step::Replace(at) => {
                self.live[at] = Some(self.next_identity);
                self.next_identity += 1;
            }
            Step::Forget(nth, all) => {
                let Some((number, (identity, lookups))) = self.nth_held(nth) else { return };
                let count = if all { lookups } else { 1 };
                let forgotten = self.table.forget(number, count);
                assert_eq!(forgotten.is_some(), count == lookups);
                if count == lookups {
                    self.held.remove(&number);
                    self.renewed.retain(|other| *other != number);
                } else {
                    self.held.insert(number, (identity, lookups - count));
                }
            }
            Step::Renew(nth) => {
                let Some((number, _)) = self.nth_held(nth) else { return };
                self.table.renew(number);
                self.renewed.push(number);
            }
        }
        self.check();
    }

    fn nth_held(&self, nth: usize) -> Option<(u64, (u32, u64))> {
        let count = self.held.len();
        self.held.iter().nth(nth % count.max(1)).map(|(number, held)| (*number, *held))
    }

    fn look_up(&mut self, at: usize) {
        let (place, Some(identity)) = (PLACES[at], self.live[at]) else { return };
        let make = |number| Arc::new(TestNode { place, number, identity });
        let node = self.table.look_up(place, |node| node.identity == identity, make).into_node();
        let number = node.number.node;
        let (held, lookups) = self.held.entry(number).or_insert((identity, 0));
        assert_eq!((*held, node.identity), (identity, identity), "the kernel holds {number} for another inode");
        *lookups += 1;
        assert!(!self.renewed.contains(&number), "a renewed inode has its old number {number}");
        let others = self.held.iter().filter(|(other, (held, _))| **other != number && *held == identity);
        assert!(
            others.clone().all(|(other, _)| self.renewed.contains(other)),
            "inode {identity} has the numbers {number} and {others:?}"
        );
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.held.len() as u64);
        for (number, (identity, _)) in &self.held {
            let node = self.table.get(*number).expect("the kernel holds the number");
            assert_eq!((node.identity, node.number.node), (*identity, *number));
        }
        // Programs see different numbers of files that exist.
        let mut shown = BTreeMap::new();
        for (place, live) in PLACES.iter().zip(self.live) {
            let Some(node) = self.table.current(*place).filter(|node| Some(node.identity) == live) else { continue };
            assert_eq!(shown.insert(node.number.shown, place), None, "two files show {}", node.number.shown);
            assert_eq!(self.table.shown(*place), node.number.shown, "a listing shows another number");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let place = 0..PLACES.len();
    prop_oneof![
        4 => place.clone().prop_map(Step::LookUp),
        2 => place.clone().prop_map(Step::Replace),
        1 => place.prop_map(Step::Delete),
        3 => (0..16_usize, any::<bool>()).prop_map(|(nth, all)| Step::Forget(nth, all)),
        1 => (0..16_usize).prop_map(Step::Renew),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_number_belongs_to_one_inode_while_the_kernel_holds_it(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}

#[test]
fn a_new_file_with_the_number_of_a_deleted_one_gets_another_node_number() {
    let mut world = World::new();
    for step in [Step::LookUp(0), Step::Replace(0), Step::LookUp(0)] {
        world.step(step);
    }
    assert_eq!(world.held.keys().copied().collect::<Vec<_>>(), [11, FIRST_ASSIGNED + shard_of(11)]);
    let node = world.table.current(PLACES[0]).expect("it is known");
    assert_eq!(node.number.shown, 11, "programs see the number of the file system");
    // Once the kernel has forgotten both, the next lookup returns the number itself.
    for step in [Step::Forget(0, true), Step::Forget(0, true), Step::LookUp(0)] {
        world.step(step);
    }
    assert_eq!(world.held.keys().copied().collect::<Vec<_>>(), [11]);
}

#[test]
fn an_inode_keeps_its_assigned_number_when_its_own_one_becomes_free() {
    let mut world = World::new();
    for step in [Step::LookUp(0), Step::Replace(0), Step::LookUp(0), Step::Forget(0, true), Step::LookUp(0)] {
        world.step(step);
    }
    assert_eq!(world.held.keys().copied().collect::<Vec<_>>(), [FIRST_ASSIGNED + shard_of(11)]);
}
