//! `hoistway trace cut`.

use clap::Args;
use clap::builder::{Resettable, Str};
use hoistway_trace::{DeviceId, ProcessName, time_ns};

use super::{TraceInput, TraceOutput, device};

/// `hoistway trace cut`.
#[derive(Args, Debug)]
// --from is the time here; elsewhere it is another name of --format.
#[command(after_help = CUT_HELP, mut_arg("format", |format| format.visible_alias(Resettable::<Str>::Reset)))]
pub struct CutArgs {
    #[command(flatten)]
    pub input: TraceInput,
    /// Keep events from this time on, counted from the trace's start: 1.5 (s), 20ms, 500ns
    #[arg(long, value_name = "TIME", value_parser = time_ns, help_heading = "Selection")]
    pub from: Option<u64>,
    /// Keep events before this time, counted from the trace's start
    #[arg(long, value_name = "TIME", value_parser = time_ns, help_heading = "Selection")]
    pub to: Option<u64>,
    /// Keep the requests of a process, including dispatch and completion in other contexts;
    /// repeatable
    #[arg(long, value_name = "NAME|PID", value_parser = process, help_heading = "Selection")]
    pub process: Vec<ProcessName>,
    /// Keep events that touch these sectors of 512 bytes, both ends included; repeatable
    #[arg(long, value_name = "A-B", value_parser = sectors, help_heading = "Selection")]
    pub sectors: Vec<(u64, u64)>,
    /// Keep the events of a device, as in 8,0; repeatable
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device, help_heading = "Selection")]
    pub device: Vec<DeviceId>,
    #[command(flatten)]
    pub output: TraceOutput,
}

const CUT_HELP: &str = "\
The result matches all options. Process names are always kept.

Examples:
  hoistway trace cut sda --from 10 --to 20 -o ten.bin         ten seconds
  hoistway trace cut sda --process fio --process 4711 -q      requests of fio and of process 4711, as text
  hoistway trace cut sda --sectors 2048-1050623 -o first.csv  the first 512 MiB of a partition";

fn process(text: &str) -> Result<ProcessName, String> {
    match text.parse() {
        Ok(pid) => Ok(ProcessName::Pid(pid)),
        Err(_) if text.is_empty() => Err("expected the name or id of a process".to_owned()),
        Err(_) => Ok(ProcessName::Name(text.as_bytes().to_vec())),
    }
}

fn sectors(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once('-').and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
    match range {
        Some((from, to)) if from <= to => Ok((from, to)),
        Some((from, to)) => Err(format!("{from} is after {to}: the first sector must not exceed the last")),
        None => Err("expected two sectors, as in 2048-1050623".to_owned()),
    }
}
