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
    ) {
        let text = TINY.replace("buffer_kib = 128", buffer) + flush;
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
