//! Reads the CSV of the MSR Cambridge traces: `time, server, disk, Read|Write, offset, length,
//! response time`.
//!
//! Times are those of Windows: ticks of 100 ns since 1601, converted to ns since 1970. Response
//! times have the same unit. Offsets and lengths are in bytes. Files with the same columns and
//! other clocks exist; their unit must be specified unless the times reveal it.

use std::sync::{Arc, Mutex};

use crate::event::DeviceId;
use crate::text::{
    Epoch, Fields, Head, LineOutput, Request, RequestFormat, RequestLines, TimeUnit, decide_epoch, decimal_ns, number,
    read_or_write, shown,
};

/// Maximum number of servers whose device numbers are reported.
const SERVERS_REPORTED_MAX: u32 = 8;

/// Names of the servers of all files that are read together. The index is the major device number.
#[derive(Clone, Debug, Default)]
pub struct Servers(Arc<Mutex<Vec<Vec<u8>>>>);

/// Parser of the lines.
#[derive(Debug)]
pub struct Msr {
    epoch: Epoch,
    servers: Servers,
    /// Server name and device number of the previous line.
    last: Option<(Vec<u8>, u32)>,
}

impl Msr {
    /// Creates a parser for a text with this beginning. Also returns the assumption that it makes,
    /// if any.
    ///
    /// # Errors
    /// Fails if the unit of the times must be specified.
    pub fn new(
        head: &[u8],
        servers: &Servers,
        specified: Option<TimeUnit>,
    ) -> Result<(RequestLines<Msr>, Option<String>), String> {
        let time = |line: &[u8]| number(Fields::split(line, b',').next()?, "").ok();
        let (epoch, remark) = decide_epoch(specified, TimeUnit::Tick, &Head::of(head, time))?;
        Ok((RequestLines::new(Msr { epoch, servers: servers.clone(), last: None }), remark))
    }

    fn server(&mut self, name: &[u8], out: &mut LineOutput<'_>) -> Result<u32, String> {
        if let Some((last, number)) = &self.last
            && last == name
        {
            return Ok(*number);
        }
        // The lock is never held across a panic; if it were, the names would still be consistent.
        let mut servers = self.servers.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let at = servers.iter().position(|server| server == name).unwrap_or_else(|| {
            servers.push(name.to_owned());
            servers.len() - 1
        });
        drop(servers);
        // A major device number has 12 bits.
        let at = u32::try_from(at).ok().filter(|at| *at < 4096).ok_or("there are more than 4,096 servers here")?;
        if (1..=SERVERS_REPORTED_MAX).contains(&at) {
            out.notices.add(out.position, format!("devices {at},N stand for the disks of {}", shown(name)));
        }
        self.last = Some((name.to_owned(), at));
        Ok(at)
    }
}

impl RequestFormat for Msr {
    fn is_titles(&self, line: &[u8]) -> bool {
        line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"timestamp"))
    }

    fn request(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<Request, String> {
        let mut fields = Fields::split(line, b',');
        let time_ns = self.epoch.ns(fields.want("the time")?)?;
        let server = fields.want("the server's name")?;
        let disk: u32 = number(fields.want("the disk's number")?, "the disk's number")?;
        let op = read_or_write(&mut fields, "read", "write", "Read or Write")?;
        let offset = number(fields.want("the offset")?, "the offset")?;
        let bytes = number(fields.want("the length")?, "the length")?;
        let response_ns = decimal_ns(fields.want("the response time")?, self.epoch.unit_ps(), "the response time")?;
        let device = DeviceId::new(self.server(server, out)?, disk);
        Ok(Request { time_ns, response_ns: Some(response_ns), device, op, offset, bytes, ..Request::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;
    use crate::text::test_support::{failure, read};

    /// Creates the parser of a text whose first line reveals the clock.
    fn msr(text: &str) -> RequestLines<Msr> {
        let first = text.lines().next().unwrap().to_owned() + "\n";
        Msr::new(first.as_bytes(), &Servers::default(), None).unwrap().0
    }

    #[test]
    fn ticks_since_1601_become_ns_since_1970_and_response_times_completions() {
        // 128166372003061629 ticks - 116444736000000000 (1601 to 1970) = 11721636003061629 ticks of
        // 100 ns: 22 February 2007.
        let text = "128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061929,hm,0,Write,512,1000,50\n";
        let batch = read(msr(text), text);
        let seen: Vec<_> = batch
            .events()
            .iter()
            .map(|event| (event.time_ns - 1_172_163_600_306_162_900, event.action, event.device.minor()))
            .collect();
        assert_eq!(
            seen,
            [
                (0, Action::Queue, 1),
                (30_000, Action::Queue, 0),
                (35_000, Action::Complete, 0),
                (41_300, Action::Complete, 1)
            ]
        );
        assert_eq!(
            (batch.events()[0].sector, batch.events()[0].bytes, batch.events()[1].bytes),
            (749_016, 32_768, 1_024)
        );
    }

    #[test]
    fn other_clocks_than_that_of_windows_must_be_specified() {
        let text = "5,hm,1,Read,0,4096,413\n".repeat(3);
        let refused = Msr::new(text.as_bytes(), &Servers::default(), None).unwrap_err();
        assert!(refused.contains("--time-unit"), "{refused}");
        let (msr, _) = Msr::new(text.as_bytes(), &Servers::default(), Some(TimeUnit::Microsecond)).unwrap();
        assert_eq!(read(msr, &text).events()[0].time_ns, 5_000);
    }

    #[test]
    fn invalid_lines_name_the_value_and_the_valid_ones() {
        let right = "128166372003061629,hm,1,Read,383496192,32768,413\n";
        for (wrong, message) in [
            ("128166372003061629,hm,1,Trim,0,512,1", "a:2: \"Trim\" stands where Read or Write should be"),
            ("128166372003061629,hm,1,Read,0,512", "a:2: the line ends where the response time should be"),
            ("128166372003061629,hm,x,Read,0,512,1", "a:2: the disk's number \"x\" is no whole number"),
            ("12,hm,1,Read,0,512,1", "a:2: the time \"12\" is before 1970"),
        ] {
            let text = format!("{right}{wrong}\n");
            let failed = failure(msr(&text), &text);
            assert!(failed.starts_with(message), "{failed}");
        }
    }
}
