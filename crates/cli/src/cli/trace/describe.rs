//! `hoistway trace describe`.

use clap::Args;

use super::TraceInput;

/// `hoistway trace describe`.
#[derive(Args, Debug)]
#[command(after_help = "\
Steps are named as btt does: Q a bio is submitted, G a request is allocated for it, I it goes to the elevator, \
M the bio is merged to a request that is there, D the driver takes it, C it completes. So I2D is the time in the \
elevator, D2C in the drive.

  hoistway trace describe disk                     what blktrace -o disk recorded
  hoistway trace describe disk --process fio       one process
  hoistway trace describe disk.txt.gz --json       blkparse's text, for a program")]
pub struct DescribeArgs {
    #[command(flatten)]
    pub input: TraceInput,

    /// Describe the processes of this name or number, each by itself
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,

    /// Show so many processes, those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "process")]
    pub top: usize,

    /// Print JSON, with all processes
    #[arg(long)]
    pub json: bool,
}
