//! `hoistway top`: a running server on a terminal.

mod app;
mod columns;
mod sample;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::cli::TopArgs;
use crate::control::Control;
use crate::failure::{Exit, UsageError};
use crate::output::{self, Out};
use app::App;
use columns::COLUMNS;
use sample::Sample;
use view::{DeviceView, View};

/// How long the screen waits for a key before it looks for news.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// What the looking thread has to tell: a view, or why there is none.
type News = Result<View, String>;

/// Shows the screen, or prints one sample.
pub fn run(args: &TopArgs, out: &mut Out) -> Result<Exit> {
    let interval = Duration::from_secs_f64(args.interval);
    let mut control = Control::connect(args.control.as_deref())?;
    let first = Sample::take(&mut control)?;
    if let Some(device) = &args.device {
        check_device(device, &first)?;
    }
    if args.json || args.once || !std::io::stdout().is_terminal() {
        std::thread::sleep(interval);
        let mut view = View::between(&first, &Sample::take(&mut control)?);
        if let Some(name) = &args.device {
            view.devices.retain(|device| device.name == *name);
        }
        if args.json {
            out.json(&view)?
        } else {
            print(&view, out)?
        }
        return Ok(Exit::Success);
    }
    let (told, news) = sync_channel(1);
    let path = args.control.clone();
    std::thread::Builder::new()
        .name("look".into())
        .spawn(move || look(control, first, path, interval, &told))
        .context("a thread cannot be started")?;
    let stopped = stop_on_signals()?;
    // The terminal is put back in order whatever ends the loop; after a panic ratatui's hook does
    // it.
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let ended = show(&mut terminal, App::new(args.device.clone(), output::colours_are_wanted()), &news, &stopped);
    ratatui::restore();
    ended.map(|()| Exit::Success)
}

/// Draws and takes keys until it is over.
fn show(terminal: &mut DefaultTerminal, mut app: App, news: &Receiver<News>, stopped: &AtomicBool) -> Result<()> {
    while !app.done && !stopped.load(Ordering::Relaxed) {
        terminal.draw(|frame| screen::draw(&app, frame))?;
        if has_hung_up()? {
            break;
        }
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                app.key(key, terminal.size()?.width);
            }
        }
        match news.try_recv() {
            Ok(Ok(view)) => app.show(view),
            Ok(Err(trouble)) => app.trouble = Some(trouble),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Waits for a key, [`KEY_WAIT`] at most; answers whether the terminal has gone. Reading from one
/// that has would go on for ever.
fn has_hung_up() -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        event::poll(KEY_WAIT)?;
        return Ok(false);
    }
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: KEY_WAIT.subsec_nanos().into() };
    match rustix::event::poll(&mut polled, Some(&wait)) {
        // A signal: whether it ends this is for the caller to see.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error).context("the terminal cannot be waited for"),
    }
    Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

/// Looks at the server once an interval until nobody wants to know. A server that has ended is
/// looked for again.
fn look(control: Control, first: Sample, path: Option<PathBuf>, interval: Duration, told: &SyncSender<News>) {
    let mut state = Some((control, first));
    loop {
        std::thread::sleep(interval);
        let news = match state.take() {
            Some((mut control, before)) => match Sample::take(&mut control) {
                Ok(now) => {
                    let view = View::between(&before, &now);
                    state = Some((control, now));
                    Ok(view)
                }
                Err(error) => Err(error.to_string()),
            },
            None => {
                state = connect(path.as_deref());
                continue;
            }
        };
        if told.send(news).is_err() {
            return;
        }
    }
}

fn connect(path: Option<&Path>) -> Option<(Control, Sample)> {
    let mut control = Control::connect(path).ok()?;
    let first = Sample::take(&mut control).ok()?;
    Some((control, first))
}

/// A flag that signals raise that would leave the terminal as it is.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stopped)).context("signals cannot be taken")?;
    }
    Ok(stopped)
}

fn check_device(name: &str, sample: &Sample) -> Result<()> {
    if sample.devices.iter().any(|device| device.name == name) {
        return Ok(());
    }
    let names: Vec<&str> = sample.devices.iter().map(|device| device.name.as_str()).collect();
    Err(UsageError(format!("the server has no device {name:?}; it has {}", names.join(", "))).into())
}

/// One sample as a table a device.
fn print(view: &View, out: &mut Out) -> Result<()> {
    for (at, device) in view.devices.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        print_device(view, device, out)?;
    }
    Ok(())
}

fn print_device(view: &View, device: &DeviceView, out: &mut Out) -> Result<()> {
    let slice = device.slice.as_ref().map_or_else(String::new, |slice| format!(", slice: {slice}"));
    out.heading(format_args!(
        "{} [{}] depth {} {}: busy {} % of {:.1} s, {} MB/s, {} requests/s, {} in the device, {} waiting{slice}",
        device.name,
        device.elevator,
        device.depth,
        device.backend,
        crate::figures::percent(device.utilisation),
        view.interval_s,
        columns::megabytes(device.bytes_per_second),
        columns::count(device.requests_per_second),
        device.in_flight,
        device.waiting,
    ))?;
    let heads: Vec<String> = COLUMNS.iter().map(|column| column.head.join(" ").trim().to_owned()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = output::table(&heads, 1);
    for row in &device.tenants {
        table.add_row(COLUMNS.iter().map(|column| (column.text)(row)));
    }
    Ok(out.table(&mut table)?)
}
