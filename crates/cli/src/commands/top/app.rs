//! The state of the screen, and the keys that change it.

use std::collections::{BTreeMap, VecDeque};

use hoistway_control::top::{DeviceView, ServerView, SortBy, TenantView};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::columns::{COLUMNS, FIRST_SORT, ShownColumn, shown_columns};

/// Maximum number of intervals that the sparkline shows.
const HISTORY_MAX: usize = 512;

/// The state of the screen.
#[derive(Debug, Default)]
pub struct App {
    /// The view on the screen.
    pub view: Option<ServerView>,
    /// The error of the last sample, if it failed.
    pub error: Option<String>,
    /// True if the screen keeps its view while newer views arrive.
    pub paused: bool,
    /// True if the help is shown.
    pub help: bool,
    /// Index of the column by which rows are sorted.
    pub sort: usize,
    /// True if the order is reversed.
    pub reversed: bool,
    /// Index of the first row on the screen.
    pub scroll: usize,
    /// Name of the device on the screen.
    pub device: Option<String>,
    /// Bytes a second of each device in past intervals, the newest last.
    pub history: BTreeMap<String, VecDeque<u64>>,
    /// True if colours are enabled.
    pub colours: bool,
    /// True if the user has quit.
    pub done: bool,
}

impl App {
    /// Creates a screen that shows this device first.
    pub fn new(device: Option<String>, colours: bool) -> App {
        App { sort: FIRST_SORT, device, colours, ..App::default() }
    }

    /// Takes the view of the last interval.
    pub fn show(&mut self, view: ServerView) {
        for device in &view.devices {
            let history = self.history.entry(device.name.clone()).or_default();
            history.push_back(device.bytes_per_second as u64);
            if history.len() > HISTORY_MAX {
                history.pop_front();
            }
        }
        self.error = None;
        if !self.paused {
            self.view = Some(view);
        }
    }

    /// The device on the screen, with its index.
    pub fn device(&self) -> Option<(usize, &DeviceView)> {
        let devices = &self.view.as_ref()?.devices;
        let index = devices.iter().position(|device| Some(&device.name) == self.device.as_ref()).unwrap_or(0);
        devices.get(index).map(|device| (index, device))
    }

    /// The tenants of the device on the screen, sorted; equal ones by name.
    pub fn rows(&self) -> Vec<&TenantView> {
        let by = COLUMNS.get(self.sort).map_or(SortBy::Name, |column| column.sort);
        self.device().map(|(_, device)| device.sorted_tenants(by, self.reversed)).unwrap_or_default()
    }

    /// The columns that a terminal of this width shows.
    pub fn columns(&self, width: u16) -> Vec<ShownColumn> {
        shown_columns(&self.rows(), width)
    }

    /// Handles a key; `width` is that of the terminal, in columns.
    pub fn handle_key(&mut self, key: KeyEvent, width: u16) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => self.done = true,
            // Any key closes the help.
            _ if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => self.done = true,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.help = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Right | KeyCode::Char('s') => self.sort_by_next(width, true),
            KeyCode::Left => self.sort_by_next(width, false),
            KeyCode::Down => self.scroll_to(self.scroll.saturating_add(1)),
            KeyCode::PageDown => self.scroll_to(self.scroll.saturating_add(10)),
            KeyCode::Up => self.scroll_to(self.scroll.saturating_sub(1)),
            KeyCode::PageUp => self.scroll_to(self.scroll.saturating_sub(10)),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll_to(usize::MAX),
            KeyCode::Tab | KeyCode::Char('d') => self.select_device(1),
            KeyCode::BackTab => self.select_device(-1),
            _ => {}
        }
    }

    fn scroll_to(&mut self, row: usize) {
        let last = self.device().map_or(0, |(_, device)| device.tenants.len().saturating_sub(1));
        self.scroll = row.min(last);
    }

    fn select_device(&mut self, by: isize) {
        let Some(devices) = self.view.as_ref().map(|view| &view.devices).filter(|devices| !devices.is_empty()) else {
            return;
        };
        let (index, count) = (self.device().map_or(0, |(index, _)| index), devices.len());
        let next = index.saturating_add(count).saturating_add_signed(by) % count;
        self.device = devices.get(next).map(|device| device.name.clone());
        self.scroll = 0;
    }

    /// Sorts by the next column on a terminal of this width; wraps around at the ends.
    fn sort_by_next(&mut self, width: u16, forward: bool) {
        let shown: Vec<usize> = self.columns(width).iter().map(|column| column.index).collect();
        let next = if forward {
            shown.iter().copied().find(|index| *index > self.sort).or(shown.first().copied())
        } else {
            shown.iter().copied().rfind(|index| *index < self.sort).or(shown.last().copied())
        };
        self.sort = next.unwrap_or(0);
    }
}
