//! `hoistway trace cut`.

use clap::Args;
use hoistway_trace::{DeviceId, ProcessName, time_ns};

use super::{TraceInput, TraceOutput, device};

/// `hoistway trace cut`.
#[derive(Args, Debug)]
#[command(after_help = CUT_HELP)]
pub struct CutArgs {
    #[command(flatten)]
    pub input: TraceInput,
    /// Keep what happened from then on, counted from the trace's start: 1.5 (s), 20ms, 500ns
    #[arg(long, value_name = "TIME", value_parser = time_ns, help_heading = "What is kept")]
    pub from: Option<u64>,
    /// Keep what happened before then, counted from the trace's start
    #[arg(long, value_name = "TIME", value_parser = time_ns, help_heading = "What is kept")]
    pub to: Option<u64>,
    /// Keep a process's requests, to their completion by whomever; may be given several times
    #[arg(long, value_name = "NAME|PID", value_parser = process, help_heading = "What is kept")]
    pub process: Vec<ProcessName>,
    /// Keep what touches these sectors of 512 bytes, both included; may be given several times
    #[arg(long, value_name = "A-B", value_parser = sectors, help_heading = "What is kept")]
    pub sectors: Vec<(u64, u64)>,
    /// Keep what happened on a device, by its numbers, as in 8,0; may be given several times
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device, help_heading = "What is kept")]
    pub device: Vec<DeviceId>,
    #[command(flatten)]
    pub output: TraceOutput,
}

const CUT_HELP: &str = "\
What is kept fulfils all that is asked for. Names of processes are kept always.

Examples:
  hoistway trace cut sda --from 10 --to 20 -o ten.bin         ten seconds
  hoistway trace cut sda --process fio --process 4711 -q      what fio and process 4711 asked for, as text
  hoistway trace cut sda --sectors 2048-1050623 -o first.csv  the first 512 MiB of a partition";

fn process(text: &str) -> Result<ProcessName, String> {
    match text.parse() {
        Ok(pid) => Ok(ProcessName::Pid(pid)),
        Err(_) if text.is_empty() => Err("a process has a name or a number".to_owned()),
        Err(_) => Ok(ProcessName::Name(text.as_bytes().to_vec())),
    }
}

fn sectors(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once('-').and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
    match range {
        Some((from, to)) if from <= to => Ok((from, to)),
        Some((from, to)) => Err(format!("{from} lies behind {to}: the first sector comes first")),
        None => Err("two sectors would be right, as in 2048-1050623".to_owned()),
    }
}
