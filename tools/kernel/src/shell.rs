//! `cargo xtask kernel run`: a kernel with the module and a shell on this terminal.

use std::process::Stdio;

use anyhow::{Result, bail};
use hoistway_guest::plan::{Plan, Subject};
use hoistway_vm::boot::Machine;
use hoistway_vm::{fetch, table};
use hoistway_workspace::programs;

use super::{build, test};

/// Options of `cargo xtask kernel run`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// The kernel
    #[arg(long, value_name = "KERNEL", default_value = table::DEFAULT)]
    kernel: String,
    /// Parameters of the module
    #[arg(long, value_name = "TEXT", default_value = "")]
    parameters: String,
    /// The memory of the virtual machine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 768)]
    memory: u32,
    /// Further options of the kernel
    #[arg(long, value_name = "TEXT", default_value = "")]
    boot_options: String,
    /// Commands for the shell, which then ends; without them the shell is interactive
    #[arg(last = true, value_name = "COMMAND")]
    commands: Vec<String>,
}

/// Boots a kernel with a shell.
pub fn run(options: &Options) -> Result<()> {
    let kernel = table::find(&options.kernel)?;
    let architecture = kernel.architecture;
    test::require_programs(architecture, false, true)?;
    let folder = super::folder()?;
    let busybox = fetch::program(architecture, "busybox", "busybox-static", "bin/busybox", &folder)?;
    let Some(fetched) = super::present(&[kernel], &folder)?.pop() else {
        bail!("the kernel {} was not downloaded", options.kernel);
    };
    let module = if build::exists() { Some(build::build(&fetched, &folder)?) } else { None };
    let guest = super::guest(architecture)?;
    let machine = Machine {
        fetched: &fetched,
        guest: &guest,
        subject: module.as_ref().map(|built| built.file.as_path()),
        programs: &[(&busybox.to_string_lossy(), "bin/busybox")],
        memory_mib: options.memory,
        counts_instructions: false,
        disks: &[],
        options: &options.boot_options,
        directory: folder.join("runs").join(format!("{}-shell", fetched.kernel.name)),
    };
    let boot = ["virtio_pci", "virtio_blk", "configfs", "mq_deadline", "bfq", "kyber_iosched"];
    let subject = module.as_ref().map(|_| Subject {
        name: build::MODULE.to_owned(),
        parameters: options.parameters.clone(),
        elevators: Vec::new(),
    });
    let mut plan = Plan {
        boot: boot.map(str::to_owned).to_vec(),
        subject,
        shell: Some(options.commands.join(" ")),
        ..Plan::default()
    };
    machine.prepare(&mut plan)?;
    let mut command = machine.command()?;
    // The keys Control-A X end the machine, Control-A C show the monitor.
    command.args(["-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console"]);
    command.args(["-mon", "chardev=console", "-chardev", "null,id=events"]).args(architecture.event_port());
    if !options.commands.is_empty() {
        command.stdin(Stdio::null());
    }
    programs::run(&mut command)
}
