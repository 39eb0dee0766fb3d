//! The CSV of the MSR Cambridge traces: `time, server, disk, Read|Write, offset, length, response time`.
//!
//! Times are those of Windows: ticks of 100 ns since 1601, which are turned into ns since 1970; response times count the same ticks. Offsets and
//! lengths are bytes. Files with the same columns and other clocks exist: then the unit has to be told, if the times do not.

use std::sync::{Arc, Mutex};

use crate::event::{DeviceId, Rwbs};
use crate::text::{
    Epoch, Fields, Head, LineFormat, Request, Requests, Taken, TimeUnit, decide_epoch, decimal_ns, number, shown,
};

/// So many servers are named when it is told which device stands for which.
const SERVERS_TOLD_MAX: u32 = 8;

/// The servers, over all files that are read together: each is a driver's number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers(Arc<Mutex<Vec<Vec<u8>>>>);

/// The reader of its lines.
#[derive(Debug)]
pub(crate) struct Msr {
    epoch: Epoch,
    servers: Servers,
    /// The server of the line before, and its number.
    last: Option<(Vec<u8>, u32)>,
    requests: Requests,
}

impl Msr {
    /// A reader for a text that begins like that, and what it assumes.
    ///
    /// # Errors
    /// When the unit of its times has to be told.
    pub fn new(head: &[u8], servers: &Servers, told: Option<TimeUnit>) -> Result<(Msr, Option<String>), String> {
        let time = |line: &[u8]| number(Fields::split(line, b',').next()?, "").ok();
        let (epoch, remark) = decide_epoch(told, TimeUnit::Tick, &Head::of(head, time))?;
        Ok((Msr { epoch, servers: servers.clone(), last: None, requests: Requests::default() }, remark))
    }

    fn server(&mut self, name: &[u8], out: &mut Taken<'_>) -> Result<u32, String> {
        if let Some((last, number)) = &self.last
            && last == name
        {
            return Ok(*number);
        }
        // Nobody panics with the lock held; if somebody did, the names are still whole.
        let mut servers = self.servers.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let at = servers.iter().position(|server| server == name).unwrap_or_else(|| {
            servers.push(name.to_owned());
            servers.len() - 1
        });
        drop(servers);
        // 12 bits are a driver's number.
        let at = u32::try_from(at).ok().filter(|at| *at < 4096).ok_or("there are more than 4,096 servers here")?;
        if (1..=SERVERS_TOLD_MAX).contains(&at) {
            out.notices.tell(out.place, format!("devices {at},N stand for the disks of {}", shown(name)));
        }
        self.last = Some((name.to_owned(), at));
        Ok(at)
    }
}

impl LineFormat for Msr {
    fn line(&mut self, line: &[u8], out: &mut Taken<'_>) -> Result<bool, String> {
        let line = line.trim_ascii();
        if line.is_empty()
            || line.starts_with(b"#")
            || line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"timestamp"))
        {
            return Ok(false);
        }
        let mut fields = Fields::split(line, b',');
        let time_ns = self.epoch.ns(fields.want("the time")?)?;
        let server = fields.want("the server's name")?;
        let disk: u32 = number(fields.want("the disk's number")?, "the disk's number")?;
        let op = match fields.want("Read or Write")? {
            op if op.eq_ignore_ascii_case(b"Read") => Rwbs::READ,
            op if op.eq_ignore_ascii_case(b"Write") => Rwbs::WRITE,
            other => return Err(format!("{} stands where Read or Write should be", shown(other))),
        };
        let offset = number(fields.want("the offset")?, "the offset")?;
        let bytes = number(fields.want("the length")?, "the length")?;
        let response_ns = decimal_ns(fields.want("the response time")?, self.epoch.unit_ps(), "the response time")?;
        let device = DeviceId::new(self.server(server, out)?, disk);
        self.requests.take(&Request { time_ns, response_ns: Some(response_ns), device, op, offset, bytes }, out)?;
        Ok(true)
    }

    fn end(&mut self, out: &mut Taken<'_>) -> bool {
        self.requests.end(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;
    use crate::text::test::{failure, read};

    /// The reader of a text whose first line tells the clock.
    fn msr(text: &str) -> Msr {
        let first = text.lines().next().unwrap().to_owned() + "\n";
        Msr::new(first.as_bytes(), &Servers::default(), None).unwrap().0
    }

    #[test]
    fn ticks_since_1601_become_ns_since_1970_and_response_times_completions() {
        // 128166372003061629 ticks - 116444736000000000 (1601 to 1970) = 11721636003061629 ticks of 100 ns: the 22nd of February 2007.
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
    fn other_clocks_than_windows_are_asked_for() {
        let text = "5,hm,1,Read,0,4096,413\n".repeat(3);
        let asked = Msr::new(text.as_bytes(), &Servers::default(), None).unwrap_err();
        assert!(asked.contains("--time-unit"), "{asked}");
        let (told, _) = Msr::new(text.as_bytes(), &Servers::default(), Some(TimeUnit::Microsecond)).unwrap();
        assert_eq!(read(told, &text).events()[0].time_ns, 5_000);
    }

    #[test]
    fn wrong_lines_name_the_value_and_what_would_be_right() {
        let right = "128166372003061629,hm,1,Read,383496192,32768,413\n";
        for (wrong, said) in [
            ("128166372003061629,hm,1,Trim,0,512,1", "a:2: \"Trim\" stands where Read or Write should be"),
            ("128166372003061629,hm,1,Read,0,512", "a:2: the line ends where the response time should be"),
            ("128166372003061629,hm,x,Read,0,512,1", "a:2: the disk's number \"x\" is no whole number"),
            ("12,hm,1,Read,0,512,1", "a:2: the time \"12\" lies before 1970"),
        ] {
            let text = format!("{right}{wrong}\n");
            let failed = failure(msr(&text), &text);
            assert!(failed.starts_with(said), "{failed}");
        }
    }
}
