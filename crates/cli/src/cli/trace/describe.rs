//! `hoistway trace describe`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace describe`.
#[derive(Args, Debug)]
#[command(after_help = "\
Steps are named as in btt: Q a bio is submitted, G a request is allocated, I the request enters the elevator, \
M the bio is merged into an existing request, D the driver takes the request, C the request completes. I2D is the \
time in the elevator, D2C the time in the drive.

  hoistway trace describe disk                     the files of blktrace -o disk
  hoistway trace describe disk --process fio       one process
  hoistway trace describe disk.txt.gz --json       blkparse's text, as JSON")]
pub struct DescribeArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Describe only the processes with this name or id
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,

    /// Number of processes to show, in descending order of bytes
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "process")]
    pub top: usize,

    /// Print JSON, with all processes
    #[arg(long)]
    pub json: bool,
}
