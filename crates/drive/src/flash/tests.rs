//! Writes, discards and flushes neither lose nor duplicate data.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::Flash;

use crate::command::{Access, Command, Completion, Op};

use crate::profile::{Kind, Profile, SingleKind};

/// Two dies of 12 blocks with 32 units each, in a slice: addresses fold.
const TINY: &str = r#"name = "tiny"
what = ""
source = ""
[flash]
depth = 64
capacity_sectors = 9000
command_us = 0.5
interface_us = 3.0
link_mb_s = 3000.0
channels = 1
channel_mb_s = 1000.0
dies = 2
planes = 2
blocks_per_plane = 40
pages_per_block = 8
page_bytes = 8192
page_read_us = [20.0, 40.0]
wordline_pages = 2
program_us = 200.0
erase_us = 1000.0
suspend_us = 5.0
overtakes_max = 3
spare_factor = 0.25
slice_blocks = 12
precondition = "steady"
buffer_kib = 128
flush_us = 100.0
"#;

fn tiny(precondition: &str, flush: &str) -> Flash {
    flash(&(TINY.replace("\"steady\"", &format!("\"{precondition}\"")) + flush))
}

fn flash(text: &str) -> Flash {
    let profile = Profile::from_toml(text, "tiny.toml").unwrap_or_else(|error| panic!("{error}"));
    match profile.kind() {
        Kind::Single(SingleKind::Flash(flash)) => Flash::new(flash),
        other => panic!("{other:?}"),
    }
}

/// Keeps `depth` commands in flight until all have completed. Calls `each` with the submission time
/// and the completion of every command, and returns the time of the last completion.
fn run(
    flash: &mut Flash,
    start_ns: u64,
    depth: usize,
    commands: &[Command],
    mut each: impl FnMut(u64, &Completion),
) -> u64 {
    let (mut now_ns, mut in_flight) = (start_ns, 0);
    let mut submitted_ns = vec![0; commands.len()];
    let mut next = 0..commands.len();
    loop {
        while in_flight < depth
            && let Some(tag) = next.next()
        {
            flash.submit(now_ns, tag as u32, &commands[tag]);
            submitted_ns[tag] = now_ns;
            in_flight += 1;
        }
        if in_flight == 0 {
            return now_ns;
        }
        now_ns = now_ns.max(flash.next_event_ns().expect("a flash drive never hangs"));
        while let Some(completion) = flash.poll(now_ns) {
            in_flight -= 1;
            each(submitted_ns[completion.tag as usize], &completion);
        }
    }
}

/// A random command.
fn command() -> impl Strategy<Value = Command> {
    let extent = || (0_u64..9000, 1_u32..200);
    let span = |(sector, sectors): (u64, u32)| (sector, sectors.min((9000 - sector) as u32));
    let transfer = move |op: Op| {
        (extent().prop_map(span), any::<bool>()).prop_map(move |((sector, sectors), fua)| Command::Transfer {
            access: Access { op, sector, sectors },
            fua: fua && op == Op::Write,
        })
    };
    let discard = extent().prop_map(span).prop_map(|(sector, sectors)| Command::Discard { sector, sectors });
    prop_oneof![8 => transfer(Op::Write), 4 => transfer(Op::Read), 1 => discard, 1 => Just(Command::Flush)]
}

/// The addresses with data, derived from the rules of the interface alone.
struct Model {
    written: BTreeSet<u32>,
    addresses: u32,
}

impl Model {
    fn apply(&mut self, command: &Command) {
        match *command {
            Command::Transfer { access: Access { op: Op::Write, sector, sectors }, .. } => {
                let end = (sector + u64::from(sectors)).div_ceil(8);
                self.written.extend((sector / 8..end).map(|unit| (unit % u64::from(self.addresses)) as u32));
            }
            Command::Discard { sector, sectors } => {
                let end = sector + u64::from(sectors);
                for unit in sector.div_ceil(8)..if end == 9000 { 1125 } else { end / 8 } {
                    self.written.remove(&((unit % u64::from(self.addresses)) as u32));
                }
            }
            Command::Transfer { .. } | Command::Flush => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_written_address_has_one_location_and_every_valid_location_one_address(
        commands in prop::collection::vec(command(), 1..600),
        precondition in prop::sample::select(vec!["fresh", "sequential", "steady"]),
        flush in prop::sample::select(vec!["", "flush_blocks_commands = true\n", "power_loss_protection = true\n"]),
    ) {
        let mut flash = tiny(precondition, flush);
        let addresses = flash.ftl.addresses();
        let written = if precondition == "fresh" { BTreeSet::new() } else { (0..addresses).collect() };
        let mut model = Model { written, addresses };
        flash.ftl.check();
        let mut now_ns = 0;
        // One command in flight, so that the order of service is that of the model.
        for command in &commands {
            let mut over = 0;
            now_ns = run(&mut flash, now_ns, 1, &[*command], |_, _| over += 1);
            prop_assert_eq!(over, 1);
            model.apply(command);
        }
        flash.ftl.check();
        prop_assert_eq!(flash.ftl.written_addresses(), model.written);
    }

    #[test]
    fn every_concurrent_command_completes_once_and_the_map_stays_consistent(
        commands in prop::collection::vec(command(), 1..800),
        depth in 1_usize..64,
        buffer in prop::sample::select(vec!["buffer_kib = 0", "buffer_kib = 64", "buffer_kib = 128"]),
        flush in prop::sample::select(vec!["", "flush_blocks_commands = true\n", "power_loss_protection = true\n"]),
        collection in prop::sample::select(vec![
            "",
            "gc_turn_programs = 1\nwrite_us = 3.0\nwrite_latency_us = 4.0\n",
            "gc_turn_programs = 2\nbackground_suspend_us = 5.0\nstripe_kib = 8\nfurther_unit_us = 0.7\n",
        ]),
    ) {
        let text = TINY.replace("buffer_kib = 128", buffer) + flush + collection;
        let mut flash = flash(&text);
        let mut over = vec![0; commands.len()];
        let mut last_ns = 0;
        run(&mut flash, 0, depth, &commands, |submitted_ns, completion| {
            over[completion.tag as usize] += 1;
            let service = &completion.service;
            assert_eq!(service.phases.total_ns(), service.finish_ns - submitted_ns, "the phases are the whole time");
            assert!(service.finish_ns >= last_ns, "completions come in the order of time");
            last_ns = service.finish_ns;
        });
        prop_assert!(over.iter().all(|times| *times == 1));
        flash.ftl.check();
    }
}

/// Reads of one size, one at a time, over a drive that was filled in order: the mean time in us.
fn read_us(text: &str, sectors: u32) -> f64 {
    let mut flash = flash(&text.replace("\"steady\"", "\"sequential\""));
    let commands: Vec<Command> =
        (0..64).map(|number| Access { op: Op::Read, sector: number * u64::from(sectors), sectors }.into()).collect();
    run(&mut flash, 0, 1, &commands, |_, _| ()) as f64 / 64_000.0
}

#[test]
fn a_read_across_two_stripes_uses_two_dies() {
    // Pages of 8 KiB on two planes: 16 KiB are read at once, 32 KiB are programmed together.
    let (wide, narrow) = (TINY.to_owned(), TINY.to_owned() + "stripe_kib = 16\n");
    // In one stripe the die reads twice, in 20 and 40 us; in two stripes two dies read at once.
    assert!(read_us(&wide, 64) > 60.0, "{}", read_us(&wide, 64));
    assert!(read_us(&narrow, 64) < read_us(&wide, 64) - 15.0, "{}", read_us(&narrow, 64));
}

#[test]
fn each_further_unit_of_a_command_costs_its_time_on_the_link() {
    let costly = TINY.to_owned() + "further_unit_us = 10.0\n";
    // Four units of one row: three further ones.
    let more_us = read_us(&costly, 32) - read_us(TINY, 32);
    assert!((more_us - 30.0).abs() < 0.1, "{more_us}");
    assert!((read_us(&costly, 8) - read_us(TINY, 8)).abs() < 0.1, "one unit has no further one");
}

#[test]
fn turns_of_garbage_collection_stop_all_writes_together() {
    let text = TINY.replace("buffer_kib = 128", "buffer_kib = 64") + "gc_turn_programs = 4\n";
    let write = |number: u64| Access { op: Op::Write, sector: (number * 2_654_435_761 % 768) * 8, sectors: 8 }.into();
    let commands: Vec<Command> = (0..20_000).map(write).collect();
    let longest = |text: &str| {
        let (mut flash, mut longest_ns) = (flash(text), 0);
        run(&mut flash, 0, 4, &commands, |at_ns, done| longest_ns = longest_ns.max(done.service.finish_ns - at_ns));
        (longest_ns, flash.counters())
    };
    let (paced, turns) = (longest(&TINY.replace("buffer_kib = 128", "buffer_kib = 64")), longest(&text));
    assert!(turns.0 > paced.0, "{} in turns, {} paced", turns.0, paced.0);
    let (one, other) = (turns.1.write_amplification().unwrap(), paced.1.write_amplification().unwrap());
    // A turn frees the space of four programs, half a block, before the host needs it: the data are
    // in fewer blocks.
    assert!((1.0..1.3).contains(&(one / other)), "{one} in turns, {other} paced");
}
