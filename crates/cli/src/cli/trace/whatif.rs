//! `hoistway trace whatif`.

use std::path::PathBuf;

use clap::Args;
use hoistway_advise::whatif::LoopModel;
use hoistway_compare::Named;
use hoistway_core::Kind;
use hoistway_sim::{Kernel, Setting};

use super::TraceInput;
use crate::exit_status;
use crate::names;

/// `hoistway trace whatif`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
The command first determines what each request waited for: a completion of its process and a pause, or a timer. Then it simulates a workload with the same \
dependencies on a model of the drive, first under the elevator of the recording, which gives the error of the model, then under the others. If the model \
differs from the recording by more than 20 %, only its error is printed.

A trace without completions does not show what requests waited for. --loop states an assumption, and the output marks the predictions as not validated: \
with open, each request is submitted at its recorded time; with closed, it waits for the previous request of its process, and with closed:N until fewer than \
N are outstanding.

Examples:
  hoistway trace whatif disk                           as `hoistway serve --record disk` wrote it
  hoistway trace whatif sda --recorded mq-deadline     as `blktrace -o sda` wrote it
  hoistway trace whatif disk --elevators bfq,cfq --report whatif.html
  hoistway trace whatif tpcc.trace --drive ssd-nvme-tlc --loop closed:8    submissions alone", "hoistway-trace-whatif"))]
pub struct WhatifArgs {
    #[command(flatten)]
    pub input: TraceInput,
    /// The drive: a name from `hoistway drives`, a drive file, or `fit` for a model that is fitted
    /// to the service times of the trace [default: the drive that the trace names, or else `fit`;
    /// for a trace without completions a usual disk that is large enough]
    #[arg(long, value_name = "NAME|FILE.toml|fit")]
    pub drive: Option<String>,
    /// Assumption for a trace without completions about what requests wait for: open (nothing),
    /// closed (the previous request of the process) or closed:N (until fewer than N are
    /// outstanding) [default: open]
    #[arg(long = "loop", value_name = "open|closed[:N]", value_parser = LoopModel::parse)]
    pub loop_model: Option<LoopModel>,
    /// The elevators to predict, separated by commas, or `all` [default: all]
    #[arg(long, value_name = "NAME,...|all", value_delimiter = ',', value_parser = Named::parse)]
    pub elevators: Vec<Named>,
    /// The elevator under which the trace was recorded [default: the one that the trace names]
    #[arg(long, value_name = "NAME", value_parser = names::kind)]
    pub recorded: Option<Kind>,
    /// The largest number of requests in the drive [default: the depth that the trace names, or the
    /// depth of the drive]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,
    /// The kernel in whose block layer all elevators run: 2.4, 2.6.18, 2.6.24, 3.2, 4.19, 6.1, 6.3
    /// or 6.12 [default: each elevator in its own, as in hoistway's server]
    #[arg(long, value_name = "VERSION", value_parser = Kernel::parse)]
    pub kernel: Option<Kernel>,
    /// Set a tunable, as in cfq-v3.slice_idle=8ms; may be given several times
    #[arg(long = "set", value_name = "ELEVATOR.TUNABLE=VALUE", value_parser = Setting::parse_argument)]
    pub settings: Vec<Setting>,
    /// The device, if the trace has several [default: the one with the most requests]
    #[arg(long, value_name = "MAJOR,MINOR")]
    pub device: Option<String>,
    /// Write a page with charts: one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of the table
    #[arg(long)]
    pub json: bool,
}
