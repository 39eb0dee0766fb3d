//! The state of a running server over an interval, as `hoistway top` shows it.
//!
//! A [`ServerSample`] holds the counters at one moment; [`ServerView::between`] turns two of them
//! into rates, latencies and shares; a [`Sampler`] does both once an interval and reconnects when
//! the server is restarted.

mod sample;
mod sort;
mod view;

use std::path::PathBuf;

use crate::client::ControlClient;

pub use sample::{DeviceSample, SampleError, ServerSample, TenantSample};
pub use sort::SortBy;
pub use view::{DeviceView, ServerView, TenantView};

/// Samples a server repeatedly.
#[derive(Debug)]
pub struct Sampler {
    /// Candidate sockets, for the first connection and for reconnections.
    paths: Vec<PathBuf>,
    /// The connection and its last sample; `None` after an error.
    last: Option<(ControlClient, ServerSample)>,
}

impl Sampler {
    /// Connects to the first of these sockets that a server listens at, and takes a first sample.
    ///
    /// # Errors
    /// The errors of the connection and of [`ServerSample::take`].
    pub fn new(paths: Vec<PathBuf>) -> Result<Sampler, SampleError> {
        let last = connect(&paths)?;
        Ok(Sampler { paths, last: Some(last) })
    }

    /// The last sample; `None` while there is no connection.
    pub fn sample(&self) -> Option<&ServerSample> {
        self.last.as_ref().map(|(_, sample)| sample)
    }

    /// Takes a sample and returns the view of the interval since the last one. Returns `None` if
    /// this call had to reconnect, or could not: the next call has an interval again.
    ///
    /// # Errors
    /// The errors of [`ServerSample::take`]; the next call then reconnects.
    pub fn view(&mut self) -> Result<Option<ServerView>, SampleError> {
        let Some((mut client, before)) = self.last.take() else {
            self.last = connect(&self.paths).ok();
            return Ok(None);
        };
        let now = ServerSample::take(&mut client)?;
        let view = ServerView::between(&before, &now);
        self.last = Some((client, now));
        Ok(Some(view))
    }
}

fn connect(paths: &[PathBuf]) -> Result<(ControlClient, ServerSample), SampleError> {
    let mut client = ControlClient::connect_first(paths)?;
    let first = ServerSample::take(&mut client)?;
    Ok((client, first))
}
