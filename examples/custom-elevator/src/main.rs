//! hoistway with the elevator `slices` beside the built-in ones.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = custom_elevator::register_slices() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    hoistway::run(std::env::args_os().collect(), None).into()
}
