//! `hoistway top`: shows the tenants of a running server on a terminal.

mod app;
mod columns;
mod screen;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use comfy_table::Table;
use hoistway_control::top::{DeviceView, SampleError, Sampler, ServerSample, ServerView};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::cli::TopArgs;
use crate::control;
use crate::failure::{Exit, UsageError};
use crate::output::{self, Out};
use app::App;
use columns::{COLUMNS, Column};

/// Interval of the check for new views while no key is pressed.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// What the sampling thread sends: a view, or the error of the sample.
type Update = Result<ServerView, String>;

/// Shows the screen, or prints one sample.
pub fn run(args: &TopArgs, out: &mut Out) -> Result<Exit> {
    let interval = Duration::from_secs_f64(args.interval);
    let mut sampler = Sampler::new(control::paths(args.control.as_ref()))
        .map_err(|error| sample_error(error, args.control.as_ref()))?;
    if let (Some(device), Some(sample)) = (&args.device, sampler.sample()) {
        check_device(device, sample)?;
    }
    if args.json || args.once || !std::io::stdout().is_terminal() {
        std::thread::sleep(interval);
        print_once(args, &mut sampler, out)?;
        return Ok(Exit::Success);
    }
    let (sender, updates) = sync_channel(1);
    std::thread::Builder::new()
        .name("sample".into())
        .spawn(move || send_updates(sampler, interval, &sender))
        .context("a thread cannot be started")?;
    let stopped = stop_on_signals()?;
    // The terminal is restored however the loop ends; after a panic ratatui's hook restores it.
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let app = App::new(args.device.clone(), output::colours_are_wanted());
    let ended = show(&mut terminal, app, &updates, &stopped);
    ratatui::restore();
    ended.map(|()| Exit::Success)
}

fn sample_error(error: SampleError, option: Option<&PathBuf>) -> Error {
    match error {
        SampleError::Client(error) => control::with_help(error, option),
        error => error.into(),
    }
}

fn print_once(args: &TopArgs, sampler: &mut Sampler, out: &mut Out) -> Result<()> {
    let mut view = sampler.view()?.context("the server closed the connection")?;
    if let Some(name) = &args.device {
        view.devices.retain(|device| device.name == *name);
    }
    if args.json { out.json(&view) } else { print(&view, out) }
}

/// Draws the screen and handles keys until the user quits.
fn show(terminal: &mut DefaultTerminal, mut app: App, updates: &Receiver<Update>, stopped: &AtomicBool) -> Result<()> {
    while !app.done && !stopped.load(Ordering::Relaxed) {
        terminal.draw(|frame| screen::draw(&app, frame))?;
        if has_hung_up()? {
            break;
        }
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                app.handle_key(key, terminal.size()?.width);
            }
        }
        match updates.try_recv() {
            Ok(Ok(view)) => app.show(view),
            Ok(Err(error)) => app.error = Some(error),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Waits for a key for at most [`KEY_WAIT`]. Returns true if the terminal was closed: reading from
/// a closed terminal would never return.
fn has_hung_up() -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        event::poll(KEY_WAIT)?;
        return Ok(false);
    }
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: KEY_WAIT.subsec_nanos().into() };
    match rustix::event::poll(&mut polled, Some(&wait)) {
        // The caller checks the flag of the signals.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error).context("the terminal cannot be polled"),
    }
    Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

/// Samples the server once an interval until the receiver is dropped. A server that has ended is
/// reconnected when it is back.
fn send_updates(mut sampler: Sampler, interval: Duration, updates: &SyncSender<Update>) {
    loop {
        std::thread::sleep(interval);
        let update = match sampler.view() {
            Ok(Some(view)) => Ok(view),
            Ok(None) => continue,
            Err(error) => Err(error.to_string()),
        };
        if updates.send(update).is_err() {
            return;
        }
    }
}

/// Returns a flag that is set by the signals that would otherwise end the process without restoring
/// the terminal.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stopped)).context("signals cannot be handled")?;
    }
    Ok(stopped)
}

fn check_device(name: &str, sample: &ServerSample) -> Result<()> {
    if sample.devices.iter().any(|device| device.name == name) {
        return Ok(());
    }
    let names: Vec<&str> = sample.devices.iter().map(|device| device.name.as_str()).collect();
    Err(UsageError(format!("the server has no device {name:?}; it has {}", names.join(", "))).into())
}

/// Prints one view, a table for each device.
fn print(view: &ServerView, out: &mut Out) -> Result<()> {
    for (index, device) in view.devices.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        print_device(view, device, out)?;
    }
    Ok(())
}

fn print_device(view: &ServerView, device: &DeviceView, out: &mut Out) -> Result<()> {
    let slice = device.slice.as_ref().map_or_else(String::new, |slice| format!(", slice: {slice}"));
    out.heading(format_args!(
        "{} [{}] depth {} {}: busy {} % of {:.1} s, {} MB/s, {} requests/s, {} in the device, {} waiting{slice}",
        device.name,
        device.elevator,
        device.depth,
        device.backend,
        hoistway_units::figures::percent(device.utilisation),
        view.interval_s,
        columns::megabytes(device.bytes_per_second),
        columns::count(device.requests_per_second),
        device.in_flight,
        device.waiting,
    ))?;
    // A terminal that is too narrow wraps the lines of a table, so columns are left out instead.
    let by_rank = (1..=COLUMNS.len()).rev().map(|ranks| table(device, ranks));
    let mut tables = by_rank.skip_while(|table| !out.takes(output::width(table)));
    let mut widest = tables.next().unwrap_or_else(|| table(device, 1));
    Ok(out.table(&mut widest)?)
}

/// The table of a device with the columns of the lowest ranks.
fn table(device: &DeviceView, ranks: usize) -> Table {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| usize::from(column.rank) < ranks).collect();
    let heads: Vec<String> = columns.iter().map(|column| column.head.join(" ").trim().to_owned()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = output::table(&heads, 1);
    for row in &device.tenants {
        table.add_row(columns.iter().map(|column| (column.text)(row)));
    }
    table
}
