//! The figures of the process as metrics.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;

use super::{gauge, whole};
use crate::process::ProcessFacts;

/// The limit of memory in bytes, if there is one.
#[derive(Debug)]
pub struct MemoryLimit(pub Option<u64>);

impl Collector for MemoryLimit {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let help = "Smallest limit of memory of the process's control group and those above it";
        gauge(&mut encoder, "memory_limit", help, Some(&Unit::Bytes), self.0.map(whole))
    }
}

/// The names are those that the client libraries of Prometheus use.
impl Collector for ProcessFacts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let cpu = ConstCounter::new(self.cpu_s);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu",
            "CPU time in user and kernel mode",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?)?;
        let help = "Start of the process, in seconds since 1970";
        gauge(&mut encoder, "process_start_time", help, Some(&Unit::Seconds), Some(self.started_s))?;
        let bytes = Some(&Unit::Bytes);
        for (name, help, unit, value) in [
            ("process_resident_memory", "Resident memory", bytes, Some(self.resident_bytes)),
            ("process_virtual_memory", "Address space", bytes, Some(self.virtual_bytes)),
            ("process_virtual_memory_max", "Limit of the address space", bytes, self.virtual_bytes_max),
            ("process_open_fds", "Open file descriptors", None, Some(self.open_fds)),
            ("process_max_fds", "Limit of open file descriptors", None, self.open_fds_max),
            ("process_threads", "Threads", None, Some(self.threads)),
        ] {
            gauge(&mut encoder, name, help, unit, value.map(whole))?;
        }
        Ok(())
    }
}
