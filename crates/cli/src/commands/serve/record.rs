//! `--record FILE`: records the requests of all queues.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hoistway_reactor::Engine;
use hoistway_record::recording::Recording;
use hoistway_server::Server;

/// Prepares a recording of all devices; no file is overwritten yet.
pub fn start<E: Engine>(path: &Path, server: &Server<E>) -> Result<Recording> {
    // A machine without a clock may report a time before 1970; the recording then begins at 0.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_1970_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
    Ok(Recording::start(path, &server.device_names(), server.now_ns(), since_1970_ns)?)
}

/// Begins the recording.
pub fn begin<E: Engine>(recording: &mut Recording, server: &mut Server<E>) {
    recording.begin();
    let mut index = 0..;
    server.record(|_| Some(Box::new(recording.tap(index.next()?))));
    tracing::info!("recording");
}

/// Adds the devices of a reload to the recording.
pub fn add_new_devices<E: Engine>(recording: &mut Recording, server: &mut Server<E>) {
    server.record(|device| match recording.add(device) {
        Ok(tap) => {
            let file = recording.newest().unwrap_or(Path::new("")).display();
            tracing::info!(device, %file, "recording");
            Some(Box::new(tap))
        }
        Err(error) => {
            tracing::error!(device, "the device is not recorded: {error}");
            None
        }
    });
}

/// Waits until all events are written, and logs the result. The server must have been dropped.
pub fn finish(recording: Recording) -> Result<()> {
    let summary = recording.finish()?;
    for file in &summary.files {
        tracing::info!(file = %file.display(), "recorded");
    }
    if summary.dropped > 0 {
        tracing::warn!(
            written = summary.written,
            dropped = summary.dropped,
            "the recording has gaps: events came faster than they could be written"
        );
    }
    if let Some(error) = &summary.failed {
        tracing::error!("the recording is incomplete: {error}");
    }
    Ok(())
}
