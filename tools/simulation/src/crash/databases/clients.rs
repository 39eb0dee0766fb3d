//! Clients that commit transactions, and the rows that must be there after a crash.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use hoistway_reactor::simulated::Prng;

use super::super::forgetting::Disk;

/// The number of client processes.
pub const CLIENTS: u64 = 3;
/// The largest payload of a row, in characters.
const PAYLOAD_MAX: u64 = 6000;
/// The word that a client prints with the number of an acknowledged commit.
const ACKNOWLEDGED: &str = "acknowledged ";

/// The statements that create the tables.
pub fn schema() -> String {
    let mut text = String::from(
        "create table entries (client integer, n integer, payload text, primary key (client, n));\n\
         create table counters (client integer primary key, n integer);\n",
    );
    for client in 0..CLIENTS {
        text += &format!("insert into counters values ({client}, 0);\n");
    }
    text
}

/// The parts of a client's input that differ between databases.
#[derive(Clone, Copy)]
pub struct Script {
    /// The statement that begins a transaction.
    pub begin: &'static str,
    /// A statement after each twentieth commit of the first client.
    pub between: &'static str,
    /// The command that prints a text.
    pub acknowledge: &'static str,
}

impl Script {
    /// Returns the input for one commit: it changes a row in each of two tables.
    fn commit(&self, client: u64, n: u64) -> String {
        let Script { begin, between, acknowledge } = self;
        let payload = payload(client, n);
        let between = if client == 0 && n.is_multiple_of(20) { between } else { "" };
        format!(
            "{begin};\ninsert into entries values ({client}, {n}, '{payload}');\n\
             update counters set n = {n} where client = {client};\ncommit;\n\
             {acknowledge} {ACKNOWLEDGED}{n}\n{between}\n"
        )
    }
}

/// Returns the payload of a row, which follows from its key.
fn payload(client: u64, n: u64) -> String {
    let mut prng = Prng::new(client.wrapping_mul(1_000_003) ^ n);
    let length = prng.magnitude(PAYLOAD_MAX) as usize;
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text += &format!("{:016x}", prng.any());
    }
    text.truncate(length);
    text
}

/// The event at a number of acknowledgements.
pub struct Cut {
    after: u64,
    seen: AtomicU64,
    act: Mutex<Box<dyn FnMut() + Send>>,
}

impl Cut {
    pub fn new(after: u64, act: impl FnMut() + Send + 'static) -> Cut {
        Cut { after, seen: AtomicU64::new(0), act: Mutex::new(Box::new(act)) }
    }

    /// Counts an acknowledgement. Returns true if the event has happened at this one.
    fn count(&self) -> bool {
        let is_due = self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.after;
        if is_due {
            self.act.lock().unwrap_or_else(PoisonError::into_inner)();
        }
        is_due
    }
}

struct Client {
    child: Child,
    log: PathBuf,
    /// The number of the last commit in the input.
    sent: JoinHandle<u64>,
    /// The number of the last commit that was acknowledged.
    acknowledged: JoinHandle<u64>,
}

/// State that the readers of all clients share: the disk, the power failure at a chosen
/// acknowledgement, and the senders of the channels in [`Signs`].
#[derive(Clone)]
struct Observer {
    disk: Disk,
    cut: Option<Arc<Cut>>,
    has_acknowledged: Sender<()>,
    has_cut: Sender<()>,
}

/// Channels that receive an item at an event. They are disconnected when all clients have ended.
pub struct Signs {
    /// The first acknowledgement of a client.
    pub has_acknowledged: Receiver<()>,
    /// The cut.
    pub has_cut: Receiver<()>,
}

/// Running clients. Dropping them kills them.
pub struct Clients(Vec<Client>);

impl Clients {
    /// Starts the clients.
    pub fn start(
        command: impl Fn() -> Command,
        script: Script,
        disk: &Disk,
        cut: Option<Cut>,
        prng: &mut Prng,
        place: &Path,
    ) -> Result<(Clients, Signs), String> {
        let ((first, has_acknowledged), (at_cut, has_cut)) = (channel(), channel());
        let observer =
            Observer { disk: disk.clone(), cut: cut.map(Arc::new), has_acknowledged: first, has_cut: at_cut };
        let mut clients = Clients(Vec::new());
        for number in 0..CLIENTS {
            let log = place.join(format!("client-{number}.log"));
            let errors = File::create(&log).map_err(|error| error.to_string())?;
            let mut command = command();
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
            let mut child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
            let input = child.stdin.take().ok_or("the input of a client is not piped")?;
            let output = BufReader::new(child.stdout.take().ok_or("the output of a client is not piped")?);
            let observer = observer.clone();
            clients.0.push(Client {
                child,
                log,
                sent: std::thread::spawn(move || send(input, script, number)),
                acknowledged: std::thread::spawn(move || read(output.lines().map_while(Result::ok), &observer)),
            });
            // Clients in step would commit in groups.
            std::thread::sleep(std::time::Duration::from_micros(prng.between(0, 5000)));
        }
        Ok((clients, Signs { has_acknowledged, has_cut }))
    }

    /// Returns the errors of a client that has ended.
    pub fn ended_early(&mut self) -> Option<String> {
        let ended = self.0.iter_mut().find_map(|client| match client.child.try_wait() {
            Ok(None) => None,
            status => Some((status, client.log.clone())),
        });
        ended.map(|(status, log)| format!("{status:?}: {}", std::fs::read_to_string(log).unwrap_or_default()))
    }

    /// Kills the clients. Returns the rows that they have sent and those that were acknowledged.
    pub fn end(mut self) -> Expected {
        let mut expected = Vec::new();
        for mut client in self.0.drain(..) {
            let _ = client.child.kill();
            let _ = client.child.wait();
            // The threads do not panic; zeroes would let the comparison fail.
            let (sent, acknowledged) =
                (client.sent.join().unwrap_or(0), client.acknowledged.join().unwrap_or(u64::MAX));
            expected.push((acknowledged, sent));
        }
        Expected(expected)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in &mut self.0 {
            let _ = client.child.kill();
            let _ = client.child.wait();
        }
    }
}

/// Writes commits to the input of a client until it ends.
fn send(mut input: ChildStdin, script: Script, client: u64) -> u64 {
    let mut n = 0;
    while input.write_all(script.commit(client, n + 1).as_bytes()).is_ok() {
        n += 1;
    }
    // The last one may have been written in part.
    n + 1
}

/// Reads acknowledgements until the client ends. Those after a power failure do not count: a client
/// outlives it, and SQLite acknowledges a commit if it cannot open the directory to sync it.
fn read(lines: impl Iterator<Item = String>, observer: &Observer) -> u64 {
    let mut last = 0;
    for line in lines {
        let Some(n) = line.strip_prefix(ACKNOWLEDGED).and_then(|n| n.parse().ok()) else { continue };
        if !observer.disk.is_on() {
            continue;
        }
        if observer.cut.as_deref().is_some_and(Cut::count) {
            let _ = observer.has_cut.send(());
        }
        if last == 0 {
            let _ = observer.has_acknowledged.send(());
        }
        last = n;
    }
    last
}

/// The last acknowledged commit and the last sent one of each client.
pub struct Expected(Vec<(u64, u64)>);

impl Expected {
    /// Returns the number of acknowledged commits.
    pub fn acknowledged(&self) -> u64 {
        self.0.iter().map(|(acknowledged, _)| acknowledged).sum()
    }

    /// Compares the rows of the two tables, columns separated by `|`, with the commits.
    pub fn compare(&self, counters: &str, entries: &str) -> Result<(), String> {
        let mut entries = entries.lines();
        let mut counters = counters.lines();
        for (client, (acknowledged, sent)) in (0..).zip(&self.0) {
            let counter = counters.next().ok_or(format!("client {client} has no counter"))?;
            let counter = counter.strip_prefix(&format!("{client}|")).and_then(|n| n.parse::<u64>().ok());
            let count = counter.ok_or(format!("the counter of client {client} is {counter:?}"))?;
            if count < *acknowledged {
                let first = count + 1;
                return Err(format!(
                    "client {client}: commits {first} to {acknowledged} were acknowledged, and are lost"
                ));
            }
            if count > *sent {
                return Err(format!("client {client}: commit {count} is there, and {sent} were sent"));
            }
            for n in 1..=count {
                let entry = entries.next().unwrap_or_default();
                if entry != format!("{client}|{n}|{}", payload(client, n)) {
                    let found: String = entry.chars().take(60).collect();
                    return Err(format!("client {client}: the row of commit {n} of {count} is wrong: {found:?}"));
                }
            }
        }
        match entries.next() {
            None => Ok(()),
            Some(more) => Err(format!("a row that was never written: {:?}", more.chars().take(60).collect::<String>())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::forgetting::Fault;
    use super::*;

    fn entries(counts: &[u64]) -> String {
        let of = |(client, count): (u64, &u64)| {
            (1..=*count).map(|n| format!("{client}|{n}|{}\n", payload(client, n))).collect::<String>()
        };
        (0..).zip(counts).map(of).collect()
    }

    #[test]
    fn commits_after_the_last_acknowledged_one_may_be_there() {
        let expected = Expected(vec![(2, 5), (0, 3)]);
        assert_eq!(expected.compare("0|2\n1|0\n", &entries(&[2, 0])), Ok(()));
        assert_eq!(expected.compare("0|5\n1|3\n", &entries(&[5, 3])), Ok(()));
    }

    #[test]
    fn a_missing_a_partial_and_an_invented_commit_are_found() {
        let expected = Expected(vec![(2, 5)]);
        let compare = |counter, entries: &str| expected.compare(counter, entries).unwrap_err();
        assert!(compare("0|1\n", &entries(&[1])).contains("commits 2 to 2 were acknowledged"));
        assert!(compare("0|3\n", &entries(&[2])).contains("the row of commit 3 of 3"));
        assert!(compare("0|2\n", &entries(&[3])).contains("a row that was never written"));
        assert!(compare("0|6\n", &entries(&[6])).contains("5 were sent"));
        assert!(compare("", "").contains("no counter"));
    }

    #[test]
    fn the_event_happens_once_at_its_acknowledgement() {
        let ((first, has_acknowledged), (at_cut, has_cut)) = (channel(), channel());
        let fired = Arc::new(AtomicU64::new(0));
        let seen = fired.clone();
        let cut = Cut::new(2, move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let lines = (1..=4).map(|n| format!("{ACKNOWLEDGED}{n}"));
        let disk = Disk::new(Fault::None, 1);
        let observer =
            Observer { disk: disk.clone(), cut: Some(Arc::new(cut)), has_acknowledged: first, has_cut: at_cut };
        assert_eq!(read(lines, &observer), 4);
        assert_eq!((fired.load(Ordering::Relaxed), has_cut.try_iter().count()), (1, 1));
        assert_eq!(has_acknowledged.try_iter().count(), 1);
        disk.fail_power(&mut Prng::new(1));
        let lines = (5..=6).map(|n| format!("{ACKNOWLEDGED}{n}"));
        assert_eq!(read(lines, &observer), 0);
    }
}
