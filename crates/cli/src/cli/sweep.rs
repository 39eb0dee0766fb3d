//! Arguments of `hoistway sweep`.

use std::path::PathBuf;

use clap::Args;

use crate::exit_status;

/// Arguments of `hoistway sweep`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway sweep sweep.toml -o results       run it; after an interruption run it again to continue
  hoistway sweep sweep.toml --points         print the number of points, and the keys that vary
  hoistway sweep results --report page.html  a page: heat map, throughput against latency, effect of each key
  duckdb -c \"select elevator, avg(latency_p99_ns) from 'results/points/*.parquet' group by all\"

A sweep file:

  jobs = [\"oltp.fio\", \"scan.fio\"]
  drives = [\"sata-7200-2006\", { base = \"cmr-8tb\", \"queue.depth\" = [1, 8, 32] }]
  elevators = [\"cfq\", \"bfq\"]
  seeds = \"1-8\"
  [vary]
  \"cfq.slice_idle\" = [0, 2, 8]
  \"job.readers.numjobs\" = [1, 4, 16]

Each combination of values is a point. A tunable varies only for its elevator, and an option only for jobs with its section. \
docs/sweeps.md describes all keys, the columns of the results and how to run a sweep on several machines.", "hoistway-sweep"))]
pub struct SweepArgs {
    /// The sweep file; or a folder of results, to draw them with --report
    #[arg(value_name = "FILE.toml|DIR")]
    pub path: PathBuf,
    /// The folder of the results; points that have a result there are not simulated again
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Simulations at a time [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Print the number of points and the keys that vary, and run nothing
    #[arg(long, conflicts_with_all = ["output", "report"])]
    pub points: bool,
    /// Write a page that draws all results of the folder: one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// The figure that the page draws: a column of numbers, as in latency_mean_ns [default:
    /// throughput and 99th percentile of latency]
    #[arg(long, value_name = "COLUMN", requires = "report")]
    pub measure: Option<String>,
    /// The two keys of the page's heat map, as in elevator,drive.queue.depth [default: the two with
    /// the greatest effects]
    #[arg(long, value_name = "KEY,KEY", requires = "report", value_parser = two_keys)]
    pub over: Option<[String; 2]>,
    /// Print JSON instead
    #[arg(long)]
    pub json: bool,
}

/// Parses two names with a comma between them.
fn two_keys(text: &str) -> Result<[String; 2], String> {
    match text.split_once(',') {
        Some((one, other)) if !one.is_empty() && !other.is_empty() && !other.contains(',') && one != other => {
            Ok([one.to_owned(), other.to_owned()])
        }
        _ => Err("it takes two keys that vary with a comma between them, as in elevator,drive".to_owned()),
    }
}
