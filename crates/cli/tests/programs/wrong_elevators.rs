//! hoistway with elevators that break rules of the request queue.

use std::process::ExitCode;

fn main() -> ExitCode {
    hoistway_simulation::register_wrong_elevators();
    hoistway::run(std::env::args_os().collect(), None).into()
}
