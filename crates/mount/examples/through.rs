//! Passes a directory through without scheduling, to measure the cost of the mount itself.
//!
//! `cargo run --example through -- SOURCE MOUNTPOINT [kernel] [all-users] [clean] [threads=N]
//! [descriptors] [shared-queue]`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hoistway_mount::{MountOptions, Options, Session, Unscheduled, Users, WriteBack};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, mount_point, rest @ ..] = words.as_slice() else {
        eprintln!(
            "usage: through SOURCE MOUNTPOINT [kernel] [all-users] [clean] [threads=N] [descriptors] [shared-queue]"
        );
        return ExitCode::from(2);
    };
    let (mut options, mut mount_options) = (Options::default(), MountOptions::default());
    for word in rest {
        match word.as_str() {
            "kernel" => options.write_back = WriteBack::Kernel,
            "all-users" => mount_options.users = Users::All,
            "clean" => mount_options.clean = true,
            "descriptors" => options.handles = false,
            "shared-queue" => mount_options.clone_fd = false,
            word => match word.strip_prefix("threads=").and_then(|number| number.parse().ok()) {
                Some(threads) => mount_options.threads = threads,
                None => {
                    eprintln!(
                        "through: `{word}` is none of kernel, all-users, clean, threads=N, descriptors, shared-queue"
                    );
                    return ExitCode::from(2);
                }
            },
        }
    }
    // Before other threads start, which inherit the signal mask.
    let mut signals = match block_signals() {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("through: {error}");
            return ExitCode::FAILURE;
        }
    };
    let session =
        match Session::mount(Path::new(source), Path::new(mount_point), Arc::new(Unscheduled), options, &mount_options)
        {
            Ok(session) => session,
            Err(error) => {
                eprintln!("through: {error}");
                return ExitCode::FAILURE;
            }
        };
    let unmounter = session.unmounter();
    std::thread::spawn(move || {
        if signals.wait() {
            match unmounter.unmount(Duration::from_secs(3)) {
                Ok(unmounted) => eprintln!("through: unmounted: {unmounted:?}"),
                Err(error) => eprintln!("through: {error}"),
            }
        }
        std::process::exit(0);
    });
    match session.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("through: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for SIGINT or SIGTERM.
struct Signals(libc::sigset_t);

fn block_signals() -> std::io::Result<Signals> {
    // SAFETY: `sigemptyset` initialises the set before its use; threads started later inherit the
    // blocked signals.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigaddset(&mut set, libc::SIGTERM);
        if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Signals(set))
    }
}

impl Signals {
    fn wait(&mut self) -> bool {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` outlives the call.
        unsafe { libc::sigwait(&self.0, &mut signal) == 0 }
    }
}
