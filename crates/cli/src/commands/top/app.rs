//! What the screen shows, and how keys change it.

use std::collections::{BTreeMap, VecDeque};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::columns::{COLUMNS, FIRST_SORT};
use super::view::{DeviceView, Row, View};

/// So many intervals of the past are drawn.
const HISTORY_MAX: usize = 512;

/// The state of the screen.
#[derive(Debug, Default)]
pub struct App {
    /// What is shown.
    pub view: Option<View>,
    /// Why there is nothing newer.
    pub trouble: Option<String>,
    /// The screen is held.
    pub paused: bool,
    /// The help is shown.
    pub help: bool,
    /// The column that rows are sorted by, by its place.
    pub sort: usize,
    /// The other way round.
    pub reversed: bool,
    /// The first row that is shown.
    pub scroll: usize,
    /// The name of the device that is shown.
    pub device: Option<String>,
    /// Bytes a second of each device, the newest last.
    pub history: BTreeMap<String, VecDeque<u64>>,
    /// Colours are wanted.
    pub colours: bool,
    /// It is over.
    pub done: bool,
}

impl App {
    /// A screen that shows this device first.
    pub fn new(device: Option<String>, colours: bool) -> App {
        App { sort: FIRST_SORT, device, colours, ..App::default() }
    }

    /// Takes what was seen last.
    pub fn show(&mut self, view: View) {
        for device in &view.devices {
            let history = self.history.entry(device.name.clone()).or_default();
            history.push_back(device.bytes_per_second as u64);
            if history.len() > HISTORY_MAX {
                history.pop_front();
            }
        }
        self.trouble = None;
        if !self.paused {
            self.view = Some(view);
        }
    }

    /// The device that is shown, and its place.
    pub fn device(&self) -> Option<(usize, &DeviceView)> {
        let devices = &self.view.as_ref()?.devices;
        let chosen = devices.iter().position(|device| Some(&device.name) == self.device.as_ref()).unwrap_or(0);
        devices.get(chosen).map(|device| (chosen, device))
    }

    /// Its tenants, sorted; equal ones by name.
    pub fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.device().map(|(_, device)| device.tenants.iter().collect()).unwrap_or_default();
        let order = COLUMNS.get(self.sort).map_or(COLUMNS[0].order, |column| column.order);
        rows.sort_by(|one, other| {
            let ordered = if self.reversed { order(other, one) } else { order(one, other) };
            ordered.then_with(|| one.name.cmp(&other.name))
        });
        rows
    }

    /// Takes a key; `width` is the terminal's.
    pub fn key(&mut self, key: KeyEvent, width: u16) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => self.done = true,
            // Any key ends the help.
            _ if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => self.done = true,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.help = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Right | KeyCode::Char('s') => self.sort = neighbour(self.sort, width, true),
            KeyCode::Left => self.sort = neighbour(self.sort, width, false),
            KeyCode::Down => self.scroll_to(self.scroll.saturating_add(1)),
            KeyCode::PageDown => self.scroll_to(self.scroll.saturating_add(10)),
            KeyCode::Up => self.scroll_to(self.scroll.saturating_sub(1)),
            KeyCode::PageUp => self.scroll_to(self.scroll.saturating_sub(10)),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll_to(usize::MAX),
            KeyCode::Tab | KeyCode::Char('d') => self.turn_to(1),
            KeyCode::BackTab => self.turn_to(-1),
            _ => {}
        }
    }

    fn scroll_to(&mut self, row: usize) {
        let last = self.device().map_or(0, |(_, device)| device.tenants.len().saturating_sub(1));
        self.scroll = row.min(last);
    }

    fn turn_to(&mut self, by: isize) {
        let Some(devices) = self.view.as_ref().map(|view| &view.devices).filter(|devices| !devices.is_empty()) else {
            return;
        };
        let (present, count) = (self.device().map_or(0, |(at, _)| at), devices.len());
        let next = present.saturating_add(count).saturating_add_signed(by) % count;
        self.device = devices.get(next).map(|device| device.name.clone());
        self.scroll = 0;
    }
}

/// The next column to sort by that a terminal of this width shows; round at the ends.
fn neighbour(sort: usize, width: u16, forwards: bool) -> usize {
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|at| COLUMNS[*at].from_width <= width).collect();
    let next = if forwards {
        shown.iter().copied().find(|at| *at > sort).or(shown.first().copied())
    } else {
        shown.iter().copied().rfind(|at| *at < sort).or(shown.last().copied())
    };
    next.unwrap_or(0)
}
