//! The program: the first process of the virtual machine, or one of its workers.

use std::process::ExitCode;

use hoistway_guest::{init, worker};

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::run();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match worker::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
