//! Runs one device on an engine that serves nothing else: measurements, benchmarks and tests.
//!
//! A server runs many devices and its clients on one engine, and has a loop of its own.

use std::io;

use hoistway_qos::{Completion, MemberId};
use hoistway_reactor::{Engine, Event};

use crate::device::{BlockRequest, Device};
use crate::output::IoOutput;

/// A device and the engine that executes its I/O, borrowed for some requests.
#[derive(Debug)]
pub struct DeviceDriver<'a, E> {
    device: &'a mut Device,
    engine: &'a mut E,
    events: Vec<Event>,
}

impl<'a, E: Engine> DeviceDriver<'a, E> {
    /// Borrows a device and its engine.
    pub fn new(device: &'a mut Device, engine: &'a mut E) -> DeviceDriver<'a, E> {
        DeviceDriver { device, engine, events: Vec::new() }
    }

    /// Returns the time of the engine in ns.
    pub fn now_ns(&self) -> u64 {
        self.engine.now_ns()
    }

    /// Submits a request; [`DeviceDriver::run`] returns its completion.
    pub fn submit(&mut self, member: MemberId, request: BlockRequest) {
        let now_ns = self.now_ns();
        self.device.submit(member, request, now_ns);
    }

    /// Dispatches requests, and appends the completions of ended requests to `completions`.
    pub fn run(&mut self, completions: &mut Vec<Completion<IoOutput>>) {
        let now_ns = self.now_ns();
        self.device.run(self.engine, now_ns, completions);
    }

    /// Waits for the end of an I/O, for the device's next wake-up, or until `until_ns`, whichever
    /// is first. The device processes the I/O that has ended.
    ///
    /// # Errors
    /// The engine failed, or a signal arrived ([`io::ErrorKind::Interrupted`]).
    pub fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let wake_ns = [self.device.next_wake_ns(), until_ns].into_iter().flatten().min();
        self.engine.turn(wake_ns, &mut self.events)?;
        let now_ns = self.now_ns();
        for event in self.events.drain(..) {
            match event {
                Event::Done { tag, done } => self.device.io_done(self.engine, tag, done, now_ns),
                event @ (Event::Connected { .. }
                | Event::Received { .. }
                | Event::Filled { .. }
                | Event::Sent { .. }
                | Event::Broken { .. }) => self.device.connection_event(self.engine, event, now_ns),
                Event::Signal(_) => return Err(io::ErrorKind::Interrupted.into()),
                Event::Accepted { .. } => {}
            }
        }
        Ok(())
    }

    /// Submits a request and waits for its completion. Completions of other requests are dropped.
    ///
    /// # Errors
    /// The engine failed, or a signal arrived ([`io::ErrorKind::Interrupted`]).
    pub fn execute(&mut self, member: MemberId, request: BlockRequest) -> io::Result<Completion<IoOutput>> {
        let ticket = request.ticket;
        self.submit(member, request);
        let mut completions = Vec::new();
        loop {
            self.run(&mut completions);
            if let Some(completion) = completions.drain(..).find(|completion| completion.ticket == ticket) {
                return Ok(completion);
            }
            self.wait(None)?;
        }
    }
}
