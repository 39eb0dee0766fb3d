//! The options of generated jobs.
//!
//! A job has one section. Sizes are small and times are short, so that fio runs it in a fraction of
//! a second.

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::case::Case;

/// Supported options that no job has, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("filename_format", "names of files alone"),
    ("directory", "names of files alone"),
    ("name", "the name of the job alone"),
    ("overwrite", "the blocks of a journal's commit alone"),
    ("fill_device", "depends on the size of the device"),
    ("create_only", "the job is left out"),
    ("verify_only", "needs a file that an earlier run has written"),
    ("zonecapacity", "zonemode=zbd needs a zoned device"),
    ("max_open_zones", "zonemode=zbd needs a zoned device"),
    ("job_max_open_zones", "zonemode=zbd needs a zoned device"),
    ("read_beyond_wp", "zonemode=zbd needs a zoned device"),
    ("writefua", "only the engine sg has it"),
    ("rate_min", "ends jobs after the first seconds"),
    ("rate_iops_min", "ends jobs after the first seconds"),
    ("rate_cycle", "ends jobs after the first seconds"),
    ("flow", "several jobs"),
    ("flow_id", "several jobs"),
    ("flow_sleep", "several jobs"),
    ("latency_target", "depends on the device"),
    ("latency_window", "depends on the device"),
    ("latency_percentile", "depends on the device"),
    ("latency_run", "depends on the device"),
    ("max_latency", "depends on the device"),
    ("steadystate", "depends on the device"),
    ("steadystate_duration", "depends on the device"),
    ("steadystate_ramp_time", "depends on the device"),
    ("stonewall", "several jobs"),
    ("wait_for", "several jobs"),
    ("exitall", "several jobs"),
    ("exit_what", "several jobs"),
    ("prio", "the order in the queue alone"),
    ("prioclass", "the order in the queue alone"),
    ("nice", "the order in the queue alone"),
    ("cmdprio_percentage", "the order in the queue alone"),
    ("cmdprio_class", "the order in the queue alone"),
    ("cmdprio", "the order in the queue alone"),
    ("cmdprio_bssplit", "the order in the queue alone"),
    ("cgroup", "the order in the queue alone"),
    ("cgroup_weight", "the order in the queue alone"),
    ("buffered", "is the opposite of direct"),
    ("direct", "not every file system has direct requests"),
    ("group_reporting", "the report alone"),
    ("new_group", "the report alone"),
    ("unified_rw_reporting", "the report alone"),
    ("write_bw_log", "logs alone"),
    ("log_avg_msec", "logs alone"),
    ("log_offset", "logs alone"),
    ("log_prio", "logs alone"),
    ("bwavgtime", "the report alone"),
    ("iopsavgtime", "the report alone"),
    ("hoistway_tree", "not an option of fio"),
    ("hoistway_walk", "not an option of fio"),
    ("hoistway_journal", "not an option of fio"),
    ("hoistway_reserve", "not an option of fio"),
];

/// Replaces an engine by one with the same options, by the seed: the draws stay the same.
fn vary_engine(case: &mut Case) {
    let has_priorities = case.options.iter().any(|(option, _)| option.starts_with("cmdprio"));
    let seed = case.seed;
    for (_, engine) in case.options.iter_mut().filter(|(option, _)| *option == "ioengine") {
        *engine = match (engine.as_str(), seed % 3) {
            ("libaio", 1) => "io_uring".to_owned(),
            ("libaio", 2) if !has_priorities => "posixaio".to_owned(),
            ("pvsync", 1) => "pvsync2".to_owned(),
            _ => continue,
        };
    }
}

/// Generates the job of a seed.
pub fn generate(seed: u64) -> Case {
    let mut grammar = Grammar { rng: hoistway_workload::stream(seed, 0, 0), options: Vec::new() };
    grammar.job();
    let mut case = Case { seed, options: grammar.options };
    vary_engine(&mut case);
    // The names of files begin with the name of the job, because jobs run in one directory.
    let name = case.name();
    for (option, value) in &mut case.options {
        if *option == "filename" {
            *value = value.split(':').map(|file| format!("{name}-{file}")).collect::<Vec<_>>().join(":");
        }
    }
    case
}

struct Grammar {
    rng: Pcg64,
    options: Vec<(&'static str, String)>,
}

/// What the options so far mean for the later ones.
struct Kind {
    rw: &'static str,
    is_null: bool,
    is_async: bool,
    /// About the bytes of the job.
    total: u64,
    block: u64,
}

impl Kind {
    fn is_random(&self) -> bool {
        self.rw.starts_with("rand")
    }

    fn is_mixed(&self) -> bool {
        matches!(self.rw, "rw" | "randrw")
    }

    fn trims(&self) -> bool {
        self.rw.contains("trim")
    }

    fn writes(&self) -> bool {
        matches!(self.rw, "write" | "randwrite" | "rw" | "randrw")
    }
}

impl Grammar {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())]
    }

    fn number(&mut self, low: u64, high: u64) -> u64 {
        self.rng.random_range(low..=high)
    }

    fn add(&mut self, option: &'static str, value: impl ToString) {
        self.options.push((option, value.to_string()));
    }

    fn job(&mut self) {
        let rw = self.pick(&[
            "read",
            "read",
            "write",
            "write",
            "randread",
            "randread",
            "randread",
            "randwrite",
            "randwrite",
            "rw",
            "rw",
            "randrw",
            "randrw",
            "trim",
            "randtrim",
            "trimwrite",
            "randtrimwrite",
        ]);
        let trims = rw.contains("trim");
        let engine = match trims {
            true => "null",
            false => self.pick(&["null", "null", "psync", "psync", "sync", "vsync", "pvsync", "libaio", "mmap"]),
        };
        let is_async = matches!(engine, "null" | "libaio");
        let mut kind = Kind { rw, is_null: engine == "null", is_async, total: 0, block: 4096 };
        let modifier = self.modifier(rw);
        self.add("rw", modified(rw, modifier));
        self.add("ioengine", engine);
        self.blocks(&mut kind);
        self.amounts(&mut kind);
        self.randomness(&kind);
        if kind.is_mixed() && self.chance(60) {
            let option = self.pick(&["rwmixread", "rwmixread", "rwmixwrite"]);
            let percent = self.pick(&[0, 10, 25, 50, 70, 90, 100]);
            self.add(option, percent);
        }
        self.submission(&kind);
        if self.chance(22) {
            self.pace(&kind);
        }
        self.syncs(&kind);
        self.verification(&kind);
        self.harmless(&kind);
    }

    fn modifier(&mut self, rw: &str) -> Option<String> {
        if !self.chance(14) || rw.contains("trimwrite") {
            return None;
        }
        Some(match rw.starts_with("rand") {
            true => self.pick(&["2", "4", "8"]).to_owned(),
            false => self.pick(&["4k", "8k", "64k", "-8k", "-16k"]).to_owned(),
        })
    }

    fn blocks(&mut self, kind: &mut Kind) {
        let sizes = ["512", "1k", "2k", "4k", "4k", "8k", "16k", "12k"];
        let bytes = |text: &str| text.strip_suffix('k').map_or(512, |kib| kib.parse::<u64>().unwrap_or(4) << 10);
        match self.number(0, 99) {
            0..45 => {
                let size = self.pick(&sizes);
                kind.block = bytes(size);
                let option = self.pick(&["bs", "bs", "blocksize"]);
                self.add(option, size);
            }
            45..60 => {
                let (one, other) = (self.pick(&sizes), self.pick(&sizes));
                kind.block = bytes(one).max(bytes(other));
                let value = match self.number(0, 3) {
                    0 => format!(",{one}"),
                    1 => format!("{one},"),
                    2 => format!("{one},{other}"),
                    _ => format!("{one},{other},{one}"),
                };
                self.add("bs", value);
                if self.chance(25) && !kind.trims() {
                    self.add("bs_is_seq_rand", 1);
                }
            }
            60..72 => {
                let range = self.pick(&["1k-4k", "4k-16k", "512-8k", "4k-32k", "2k-3k"]);
                kind.block = 8192;
                self.add("bsrange", range);
                if self.chance(20) && !kind.is_random() {
                    self.add("bs_unaligned", 1);
                }
            }
            72..84 => {
                let split =
                    self.pick(&["4k/50:8k/50", "1k/10:4k/60:16k/", "4k/90:64k/10", "512/25:1k/25:2k/", "8k/:4k/"]);
                kind.block = 8192;
                self.add("bssplit", split);
            }
            _ => {}
        }
        if self.chance(if kind.is_random() { 10 } else { 3 }) {
            let align = self.pick(&["512", "1k", "4k", "8k", "3k"]);
            self.add("ba", align);
        }
    }

    /// Sizes of files, regions and passes.
    fn amounts(&mut self, kind: &mut Kind) {
        let blocks = self.number(8, 260);
        let mut bytes = blocks * kind.block;
        // Without a file, fio moves whole blocks beyond the end.
        if self.chance(15) && !kind.is_null {
            bytes += self.number(1, kind.block - 1);
        }
        kind.total = bytes;
        let files = if self.chance(30) { self.number(2, 5) } else { 1 };
        let names = self.chance(25);
        if names {
            let names = ["a", "b", "d", "e", "f"];
            self.add("filename", names[..files as usize].join(":"));
        } else if files > 1 {
            self.add("nrfiles", files);
        }
        let clones = if self.chance(7) { self.number(2, 3) } else { 1 };
        if clones > 1 {
            self.add("numjobs", clones);
        }
        // Without a file, percentages have nothing to be taken of.
        // fio rounds percentages to the smallest block of all directions.
        let has_one_size = !self.options.iter().any(|(option, value)| *option == "bs" && value.contains(','));
        let has_percent = !kind.is_null && has_one_size && self.chance(40);
        if self.chance(35) {
            self.add("filesize", bytes / files);
            if has_percent {
                let percent = self.pick(&[10, 25, 33, 50, 75, 100]);
                self.add("size", format!("{percent}%"));
            } else if self.chance(40) {
                let size = self.number(kind.block, bytes * 5 / 4);
                self.add("size", size);
            }
            if self.chance(30) {
                let offset = self.number(0, (bytes / files / 2 / 512).max(1)) * 512;
                let percent = self.pick(&[10, 25, 33, 50]);
                self.add("offset", if has_percent { format!("{percent}%") } else { offset.to_string() });
                if has_percent && self.chance(30) {
                    let align = self.pick(&["512", "1k", "8k"]);
                    self.add("offset_align", align);
                }
            }
        } else {
            let value = if self.chance(20) { format!("{}k", (bytes >> 10).max(1)) } else { bytes.to_string() };
            self.add("size", value);
            if self.chance(20) {
                let offset = self.number(0, 64) * 512;
                self.add("offset", offset);
            }
            if clones > 1 && self.chance(50) {
                let increment = self.pick(&["4k", "64k", "100k"]);
                self.add("offset_increment", increment);
            }
        }
        self.passes(kind, files);
    }

    /// Bytes and requests of the job, and the turns of its files.
    fn passes(&mut self, kind: &Kind, files: u64) {
        if self.chance(18) {
            let percent = self.pick(&[10, 50, 150u64, 200]).min(100);
            let io_size = self.number(kind.block, kind.total * 5 / 2);
            let is_percent = self.chance(30);
            let option = self.pick(&["io_size", "io_size", "io_limit"]);
            self.add(option, if is_percent { format!("{percent}%") } else { io_size.to_string() });
        }
        if self.chance(12) {
            let requests = self.number(1, 300);
            self.add("number_ios", requests);
        }
        if self.chance(10) {
            let loops = self.number(2, 3);
            self.add("loops", loops);
            if self.chance(20) && !kind.is_null && kind.rw == "write" {
                self.add("unlink_each_loop", 1);
            }
        }
        if files > 1 && self.chance(50) {
            let service = self.pick(&[
                "roundrobin",
                "roundrobin:4",
                "sequential",
                "random",
                "random:3",
                "zipf:1.2",
                "pareto:0.3",
                "normal:30",
            ]);
            self.add("file_service_type", service);
        }
        if files > 1 && self.chance(15) {
            let open = self.number(1, files);
            self.add("openfiles", open);
        }
        if self.chance(6) && files == 1 {
            self.add("zonemode", "strided");
            let size = self.pick(&["16k", "32k", "64k"]);
            self.add("zonesize", size);
            if self.chance(50) {
                let range = self.pick(&["32k", "64k"]);
                self.add("zonerange", range);
            }
            if self.chance(50) {
                let skip = self.pick(&["0", "16k", "32k"]);
                self.add("zoneskip", skip);
            }
        }
    }

    fn randomness(&mut self, kind: &Kind) {
        if self.chance(3) {
            let base = self.pick(&[1000, 1024]);
            self.add("kb_base", base);
        }
        if self.chance(8) {
            let seed = self.number(1, 1 << 30);
            self.add("randseed", seed);
        }
        if !kind.is_random() {
            return;
        }
        // With reads and writes of different sizes fio ends the job at the first touched block.
        let is_cut = kind.rw == "randrw"
            && self.options.iter().any(|(name, value)| name.starts_with("bs") && value.contains(','));
        if self.chance(25) || is_cut {
            self.add("norandommap", 1);
        }
        if self.chance(25) {
            let law = self.pick(&[
                "random",
                "zipf:1.2",
                "zipf:0.8",
                "pareto:0.2",
                "pareto:0.9",
                "normal:20",
                "normal:5",
                "zoned:60/10:30/20:8/30:2/40",
                "zoned:50/5:30/15:20/",
                "zoned_abs:70/32k:30/64k",
                "zipf:1.2:0.3",
                "normal:10:0.25",
            ]);
            self.add("random_distribution", law);
        }
        if self.chance(12) {
            let percent = self.pick(&["0", "10", "50", "90", "100", "50,20"]);
            self.add("percentage_random", percent);
        }
        if self.chance(10) {
            let sequencer = self.pick(&["sequential", "identical"]);
            self.add("rw_sequencer", sequencer);
        }
    }

    fn submission(&mut self, kind: &Kind) {
        if !kind.is_async || !self.chance(50) {
            return;
        }
        let depth = self.pick(&[2, 4, 8, 32]);
        self.add("iodepth", depth);
        if self.chance(25) {
            let batch = self.pick(&[1, 2, 4, 0]);
            let option = self.pick(&["iodepth_batch", "iodepth_batch_submit"]);
            self.add(option, batch);
        }
        if self.chance(15) {
            let least = self.pick(&[1, 2]);
            self.add("iodepth_batch_complete_min", least);
            if self.chance(50) {
                self.add("iodepth_batch_complete_max", depth);
            }
        }
        if self.chance(15) {
            let low = self.number(1, depth);
            self.add("iodepth_low", low);
        }
        if self.chance(8) && kind.is_null {
            let mode = self.pick(&["inline", "offload"]);
            self.add("io_submit_mode", mode);
        }
    }

    /// Rates and pauses: about half a second.
    fn pace(&mut self, kind: &Kind) {
        let requests = self.number(20, 60);
        let caps = self.chance(65);
        if caps {
            let iops = self.pick(&[50u64, 80, 100, 150]);
            let pair = |one: String, other: String, shape: u64| match shape {
                0 => one,
                1 if kind.is_mixed() => format!("{one},{other}"),
                2 if kind.is_mixed() => format!(",{other}"),
                3 if kind.is_mixed() => format!("{one},"),
                _ => one,
            };
            let (shape, other) = (self.number(0, 3), self.pick(&[20u64, 60, 200]));
            if self.chance(50) {
                self.add("rate_iops", pair(iops.to_string(), other.to_string(), shape));
            } else {
                let (one, other) = (iops * kind.block, other * kind.block);
                self.add("rate", pair(one.to_string(), other.to_string(), shape));
            }
            if self.chance(12) {
                self.add("rate_process", "poisson");
            }
        }
        if !caps || self.chance(35) {
            let pause = self.pick(&[2_000u64, 4_000, 12_000, 25_000]);
            self.add("thinktime", if caps { pause } else { pause.min(12_000) });
            if self.chance(40) {
                let blocks = self.pick(&[2, 3, 5, 8]);
                self.add("thinktime_blocks", blocks);
            }
            if self.chance(20) {
                self.add("thinktime_spin", pause.min(2_000) / 2);
            }
            if self.chance(20) {
                let counted = self.pick(&["complete", "issue"]);
                self.add("thinktime_blocks_type", counted);
            }
            if self.chance(8) {
                self.add("thinktime_iotime", "10ms");
            }
            if caps && self.chance(50) {
                self.add("rate_ignore_thinktime", 1);
            }
        }
        match self.number(0, 9) {
            0..5 => self.add("number_ios", requests),
            _ => {
                self.add("runtime", "700ms");
                self.add("time_based", 1);
                if self.chance(15) {
                    self.add("ramp_time", "200ms");
                }
            }
        }
        if self.chance(6) {
            self.add("startdelay", "100ms");
        }
    }

    fn syncs(&mut self, kind: &Kind) {
        if kind.is_null || !kind.writes() {
            return;
        }
        if self.chance(12) {
            let option = self.pick(&["fsync", "fdatasync"]);
            let writes = self.pick(&[1, 4, 10]);
            self.add(option, writes);
        }
        if self.chance(6) {
            let option = self.pick(&["end_fsync", "fsync_on_close"]);
            self.add(option, 1);
        }
        if self.chance(5) {
            let kind = self.pick(&["none", "sync", "dsync"]);
            self.add("sync", kind);
        }
    }

    fn verification(&mut self, kind: &Kind) {
        // Parts of a pass that were not written cannot be verified.
        let is_plain = matches!(kind.rw, "write" | "randwrite") && !kind.is_null;
        let special = ["loops", "io_size", "io_limit", "bs_unaligned", "unlink_each_loop", "numjobs"];
        let has_special = self.options.iter().any(|(option, _)| special.contains(option));
        if !is_plain || has_special || !self.chance(20) {
            return;
        }
        let sum = self.pick(&["crc32c", "md5", "null"]);
        self.add("verify", sum);
        if self.chance(20) {
            self.add("do_verify", 0);
        } else if self.chance(30) {
            let backlog = self.pick(&[4, 16]);
            self.add("verify_backlog", backlog);
            if self.chance(40) {
                self.add("verify_backlog_batch", 2);
            }
        }
    }

    fn harmless(&mut self, kind: &Kind) {
        if kind.is_null {
            return;
        }
        if self.chance(5) {
            let value = self.pick(&[0, 1]);
            self.add("invalidate", value);
        }
        if self.chance(5) {
            let advice = self.pick(&["0", "1", "sequential", "random"]);
            self.add("fadvise_hint", advice);
        }
        if self.chance(3) && kind.rw == "read" {
            self.add("pre_read", 1);
        }
        if self.chance(3) && kind.rw == "write" {
            self.add("unlink", 1);
        }
    }
}

fn modified(rw: &str, modifier: Option<String>) -> String {
    match modifier {
        Some(modifier) => format!("{rw}:{modifier}"),
        None => rw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hoistway_fio::{Support, options};

    use super::*;

    #[test]
    fn every_supported_option_is_generated_or_left_out_with_a_reason() {
        let cases: Vec<Case> = (0..3000).map(generate).collect();
        let used: HashSet<&str> = cases.iter().flat_map(|case| case.options.iter().map(|(name, _)| *name)).collect();
        for known in options().filter(|known| matches!(known.support, Support::Supported(_))) {
            let is_used = known.names().any(|name| used.contains(name));
            let is_left_out = LEFT_OUT.iter().any(|(name, _)| *name == known.name);
            assert!(is_used != is_left_out, "{}: used {is_used}, left out {is_left_out}", known.name);
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_job() {
        assert_eq!(generate(7), generate(7));
        assert_ne!(generate(7).options, generate(8).options);
    }
}
