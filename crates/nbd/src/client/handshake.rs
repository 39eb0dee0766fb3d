//! The handshake as a client leads it: one option after the other, each when the one before is answered.

use std::collections::VecDeque;

use crate::client::session::{Context, Session};
use crate::server::Replies;
use crate::unit::Unit;
use crate::wire::{
    EXPORT_NAME_ZEROES, GREETING_MAGIC, OLDSTYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_BYTES, OPTION_REPLY_MAGIC, Reader,
    STRING_BYTES_MAX, client_flags, handshake_flags, info, option, rep,
};

/// The longest reply to an option: two strings and the numbers before them.
const REPLY_BYTES_MAX: u32 = 2 * STRING_BYTES_MAX as u32 + 16;
/// The most bytes of names and descriptions that are kept of what a server lists.
const LISTED_BYTES_MAX: usize = 16 << 20;

/// What a client wants of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The export's name; empty is the default export.
    pub export: String,
    /// Whether to encrypt.
    pub tls: TlsWish,
    /// The best form of replies; a server that does not know it gives the next lower one.
    pub replies: Replies,
    /// Metadata contexts to choose, such as [`BASE_ALLOCATION`](crate::wire::BASE_ALLOCATION). They need structured replies.
    pub contexts: Vec<String>,
    /// How it is to end.
    pub goal: Goal,
}

/// Whether a client encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsWish {
    /// In plain text.
    Never,
    /// If the server can; somebody in the middle can prevent it.
    IfOffered,
    /// Or not at all.
    Always,
}

/// How a handshake is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// In transmission: GO, or EXPORT_NAME where the server does not know GO.
    Enter,
    /// In transmission, by EXPORT_NAME.
    EnterByName,
    /// With what INFO and LIST_META_CONTEXT tell of the export; then ABORT.
    Describe,
    /// With what LIST tells; then ABORT.
    List,
}

/// Where a handshake stands.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed; all that were given are used.
    More,
    /// The server has acknowledged STARTTLS: begin TLS now, and go on with [`Handshake::encrypted`]. Bytes that were not used are TLS.
    StartTls,
    /// In transmission. Bytes that were not used belong to it.
    Ready(Box<Session>),
    /// ABORT was acknowledged: close. Some servers close without a word; then ask for [`Handshake::into_findings`].
    Over(Findings),
}

/// What was found out without entering transmission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Names and descriptions, as LIST told them.
    pub exports: Vec<(String, String)>,
    /// What INFO told.
    pub told: Option<Told>,
    /// Metadata contexts that can be chosen for the export.
    pub contexts: Vec<String>,
}

/// What a server told of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes.
    pub size: u64,
    /// [Transmission flags](crate::wire::transmission_flags).
    pub flags: u16,
    /// The canonical name.
    pub name: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Minimum, preferred and maximum sizes in bytes.
    pub block_sizes: Option<(u32, u32, u32)>,
}

/// Why a handshake failed. Where the protocol wants it, ABORT is in `out`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A magic number is wrong: this is no NBD server.
    #[error("wrong magic number {found:#x} where {wanted:#x} belongs")]
    Magic {
        /// What was found.
        found: u64,
        /// What belongs there.
        wanted: u64,
    },
    /// A server of before 2011.
    #[error("the server speaks oldstyle NBD only")]
    Oldstyle,
    /// A server without options, of which more than EXPORT_NAME was wanted.
    #[error("the server does not speak fixed newstyle, so it can do no more than enter an export in plain text")]
    NotFixed,
    /// The server refused an option.
    #[error("the server refused option {option} with {}{}{text}", rep::error_name(*kind), if text.is_empty() { "" } else { ": " })]
    Refused {
        /// The option.
        option: u32,
        /// The error: see [`rep`].
        kind: u32,
        /// The server's words.
        text: String,
    },
    /// A reply to something else, or of a kind that does not belong there.
    #[error("reply {kind:#x} to option {option} came while option {wanted} waits")]
    Unexpected {
        /// What it answers.
        option: u32,
        /// The option that waits.
        wanted: u32,
        /// Its kind.
        kind: u32,
    },
    /// A reply whose data make no sense.
    #[error("{what} makes no sense")]
    Malformed {
        /// Which.
        what: &'static str,
    },
    /// A reply or a list beyond all measure.
    #[error("{bytes} bytes of replies; the most is {bytes_max}")]
    TooLong {
        /// What is claimed.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The handshake has ended.
    #[error("the handshake is over")]
    Over,
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    wants: Wants,
    stage: Stage,
    unit: Unit,
    plan: VecDeque<u32>,
    fixed: bool,
    no_zeroes: bool,
    encrypted: bool,
    replies: Replies,
    contexts: Vec<Context>,
    told: Told,
    size_told: bool,
    findings: Findings,
    listed_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Greeting,
    /// The header of a reply to this option.
    Header(u32),
    Data {
        option: u32,
        kind: u32,
        bytes: usize,
    },
    /// The answer to EXPORT_NAME, which has no header.
    Export,
    Encryption,
    Over,
}

impl Handshake {
    /// A handshake; the server speaks first.
    pub fn new(wants: Wants) -> Handshake {
        Handshake {
            wants,
            stage: Stage::Greeting,
            unit: Unit::default(),
            plan: VecDeque::new(),
            fixed: false,
            no_zeroes: false,
            encrypted: false,
            replies: Replies::Simple,
            contexts: Vec::new(),
            told: Told::default(),
            size_told: false,
            findings: Findings::default(),
            listed_bytes: 0,
        }
    }

    /// Takes bytes of the server; answers how many were used and where things stand. What is to be sent goes to `out`.
    ///
    /// # Errors
    /// When it cannot be done: see [`Failure`]. The connection is of no use then; send what is in `out` and close it.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Failure> {
        let mut rest = input;
        let outcome = self.step(&mut rest, out);
        if outcome.is_err() || matches!(outcome, Ok(Progress::Ready(_) | Progress::Over(_))) {
            self.stage = Stage::Over;
        }
        outcome.map(|progress| (input.len() - rest.len(), progress))
    }

    /// The connection is encrypted now: options begin anew.
    pub fn encrypted(&mut self, out: &mut Vec<u8>) {
        self.encrypted = true;
        self.unit = Unit::default();
        self.make_plan();
        self.next_option(out);
    }

    /// What was found out until now.
    pub fn into_findings(self) -> Findings {
        self.findings
    }

    /// Bytes of memory that are held for what is not whole yet: at most 8208.
    pub fn buffered_bytes(&self) -> usize {
        self.unit.capacity()
    }

    fn step(&mut self, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<Progress, Failure> {
        loop {
            let wanted = match self.stage {
                Stage::Greeting => 18,
                Stage::Header(_) => OPTION_REPLY_BYTES,
                Stage::Data { bytes, .. } => bytes,
                Stage::Export => 10 + if self.no_zeroes { 0 } else { EXPORT_NAME_ZEROES },
                Stage::Encryption => return Ok(Progress::StartTls),
                Stage::Over => return Err(Failure::Over),
            };
            if !self.unit.collect(rest, wanted) {
                return Ok(Progress::More);
            }
            let unit = self.unit.take();
            let step = match self.stage {
                Stage::Greeting => self.greeting(&unit, out),
                Stage::Header(option) => self.header(option, &unit),
                Stage::Data { option, kind, .. } => self.reply(option, kind, &unit, out),
                _ => self.exported(&unit),
            };
            self.unit.reuse(unit);
            if let Some(progress) = step? {
                return Ok(progress);
            }
        }
    }

    fn greeting(&mut self, unit: &[u8], out: &mut Vec<u8>) -> Result<Option<Progress>, Failure> {
        let mut reader = Reader(unit);
        for wanted in [GREETING_MAGIC, OPTION_MAGIC] {
            match reader.u64().unwrap_or_default() {
                OLDSTYLE_MAGIC => return Err(Failure::Oldstyle),
                found if found != wanted => return Err(Failure::Magic { found, wanted }),
                _ => {}
            }
        }
        let flags = reader.u16().unwrap_or_default();
        self.fixed = flags & handshake_flags::FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & handshake_flags::NO_ZEROES != 0;
        let fixed = if self.fixed { client_flags::FIXED_NEWSTYLE } else { 0 };
        let no_zeroes = if self.no_zeroes { client_flags::NO_ZEROES } else { 0 };
        let enters = matches!(self.wants.goal, Goal::Enter | Goal::EnterByName);
        if !self.fixed && (!enters || self.wants.tls == TlsWish::Always) {
            return Err(Failure::NotFixed);
        }
        out.extend_from_slice(&(fixed | no_zeroes).to_be_bytes());
        self.make_plan();
        self.next_option(out);
        Ok(None)
    }

    /// The options that are to be sent, if each is granted.
    fn make_plan(&mut self) {
        self.plan.clear();
        if !self.fixed {
            self.plan.push_back(option::EXPORT_NAME);
            return;
        }
        if self.wants.tls != TlsWish::Never && !self.encrypted {
            self.plan.push_back(option::STARTTLS);
        }
        match self.wants.replies {
            Replies::Simple => {}
            Replies::Structured => self.plan.push_back(option::STRUCTURED_REPLY),
            Replies::Extended => self.plan.push_back(option::EXTENDED_HEADERS),
        }
        let enters = matches!(self.wants.goal, Goal::Enter | Goal::EnterByName);
        if enters && !self.wants.contexts.is_empty() && self.wants.replies != Replies::Simple {
            self.plan.push_back(option::SET_META_CONTEXT);
        }
        self.plan.extend(match self.wants.goal {
            Goal::Enter => &[option::GO][..],
            Goal::EnterByName => &[option::EXPORT_NAME],
            Goal::Describe if self.wants.replies == Replies::Simple => &[option::INFO, option::ABORT],
            Goal::Describe => &[option::INFO, option::LIST_META_CONTEXT, option::ABORT],
            Goal::List => &[option::LIST, option::ABORT],
        });
    }

    fn next_option(&mut self, out: &mut Vec<u8>) {
        let option = loop {
            let option = self.plan.pop_front().unwrap_or(option::ABORT);
            let meta = matches!(option, option::SET_META_CONTEXT | option::LIST_META_CONTEXT);
            if !meta || self.replies != Replies::Simple {
                break option;
            }
        };
        let mut data = Vec::new();
        let name = self.wants.export.as_bytes();
        match option {
            option::EXPORT_NAME => data.extend_from_slice(name),
            option::INFO | option::GO => {
                counted(name, &mut data);
                let items = [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE];
                data.extend_from_slice(&(items.len() as u16).to_be_bytes());
                data.extend_from_slice(items.map(u16::to_be_bytes).as_flattened());
            }
            option::SET_META_CONTEXT | option::LIST_META_CONTEXT => {
                counted(name, &mut data);
                data.extend_from_slice(&(self.wants.contexts.len() as u32).to_be_bytes());
                for query in &self.wants.contexts {
                    counted(query.as_bytes(), &mut data);
                }
            }
            _ => {}
        }
        send_option(option, &data, out);
        self.stage = if option == option::EXPORT_NAME { Stage::Export } else { Stage::Header(option) };
    }

    fn header(&mut self, wanted: u32, unit: &[u8]) -> Result<Option<Progress>, Failure> {
        let mut reader = Reader(unit);
        let found = reader.u64().unwrap_or_default();
        let [option, kind, bytes] = [0; 3].map(|_: u32| reader.u32().unwrap_or_default());
        if found != OPTION_REPLY_MAGIC {
            return Err(Failure::Magic { found, wanted: OPTION_REPLY_MAGIC });
        }
        if option != wanted {
            return Err(Failure::Unexpected { option, wanted, kind });
        }
        if bytes > REPLY_BYTES_MAX {
            return Err(Failure::TooLong { bytes: bytes.into(), bytes_max: REPLY_BYTES_MAX.into() });
        }
        self.stage = Stage::Data { option, kind, bytes: bytes as usize };
        Ok(None)
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Option<Progress>, Failure> {
        self.stage = Stage::Header(option);
        if kind & rep::ERROR_BIT != 0 {
            return self.refused(option, kind, data, out);
        }
        match (kind, option) {
            (rep::ACK, _) if data.is_empty() => self.granted(option, out),
            (rep::ACK, _) => Err(Failure::Malformed { what: "an acknowledgement with data" }),
            (rep::SERVER, option::LIST) => self.listed(data),
            (rep::INFO, option::INFO | option::GO) => self.told(data),
            (rep::META_CONTEXT, option::SET_META_CONTEXT | option::LIST_META_CONTEXT) => self.context(option, data),
            _ => Err(Failure::Unexpected { option, wanted: option, kind }),
        }
    }

    fn granted(&mut self, option: u32, out: &mut Vec<u8>) -> Result<Option<Progress>, Failure> {
        match option {
            option::STARTTLS => {
                self.stage = Stage::Encryption;
                return Ok(None);
            }
            option::STRUCTURED_REPLY => self.replies = Replies::Structured,
            option::EXTENDED_HEADERS => self.replies = Replies::Extended,
            option::GO | option::INFO => {
                if !std::mem::take(&mut self.size_told) {
                    return Err(Failure::Malformed { what: "information without the size" });
                }
                let told = std::mem::take(&mut self.told);
                if option == option::GO {
                    return Ok(Some(self.ready(told)));
                }
                self.findings.told = Some(told);
            }
            option::ABORT => return Ok(Some(Progress::Over(std::mem::take(&mut self.findings)))),
            _ => {}
        }
        self.next_option(out);
        Ok(None)
    }

    /// What the server will not do: do without it where that is possible.
    fn refused(&mut self, option: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Option<Progress>, Failure> {
        self.told = Told::default();
        self.size_told = false;
        match option {
            _ if kind == rep::ERR_SHUTDOWN => {}
            option::STARTTLS if self.wants.tls == TlsWish::IfOffered => {
                self.next_option(out);
                return Ok(None);
            }
            option::EXTENDED_HEADERS if kind == rep::ERR_UNSUP => {
                self.plan.push_front(option::STRUCTURED_REPLY);
                self.next_option(out);
                return Ok(None);
            }
            option::STRUCTURED_REPLY if kind == rep::ERR_UNSUP => {
                self.next_option(out);
                return Ok(None);
            }
            // Without metadata, then; if the export is what is wrong, GO will tell.
            option::SET_META_CONTEXT | option::LIST_META_CONTEXT => {
                self.contexts.clear();
                self.findings.contexts.clear();
                self.next_option(out);
                return Ok(None);
            }
            option::GO if kind == rep::ERR_UNSUP => {
                self.plan = VecDeque::from([option::EXPORT_NAME]);
                self.next_option(out);
                return Ok(None);
            }
            _ => {}
        }
        if option != option::ABORT {
            send_option(option::ABORT, &[], out);
        }
        Err(Failure::Refused { option, kind, text: String::from_utf8_lossy(data).into_owned() })
    }

    fn listed(&mut self, data: &[u8]) -> Result<Option<Progress>, Failure> {
        let what = Failure::Malformed { what: "an entry of the list" };
        let mut reader = Reader(data);
        let name = reader.counted().and_then(string).ok_or(what)?;
        let description = String::from_utf8_lossy(reader.0).into_owned();
        self.listed_bytes += data.len() + 64;
        if self.listed_bytes > LISTED_BYTES_MAX {
            return Err(Failure::TooLong { bytes: self.listed_bytes as u64, bytes_max: LISTED_BYTES_MAX as u64 });
        }
        self.findings.exports.push((name, description));
        Ok(None)
    }

    fn told(&mut self, data: &[u8]) -> Result<Option<Progress>, Failure> {
        let what = Failure::Malformed { what: "information about the export" };
        let mut reader = Reader(data);
        match (reader.u16().ok_or(what.clone())?, data.len()) {
            (info::EXPORT, 12) => {
                self.told.size = reader.u64().ok_or(what.clone())?;
                self.told.flags = reader.u16().ok_or(what)?;
                self.size_told = true;
            }
            (info::BLOCK_SIZE, 14) => {
                let [min, preferred, most] = [0; 3].map(|_: u32| reader.u32().unwrap_or_default());
                let sane = min.is_power_of_two() && min <= 1 << 16 && preferred.is_power_of_two();
                if !sane || preferred < min.max(512) || most < preferred {
                    return Err(Failure::Malformed { what: "the sizes of blocks" });
                }
                self.told.block_sizes = Some((min, preferred, most));
            }
            (info::EXPORT | info::BLOCK_SIZE, _) => return Err(what),
            (info::NAME, _) => self.told.name = Some(string(reader.0).ok_or(what)?),
            (info::DESCRIPTION, _) => self.told.description = Some(string(reader.0).ok_or(what)?),
            // What is unknown is to be ignored.
            _ => {}
        }
        Ok(None)
    }

    fn context(&mut self, option: u32, data: &[u8]) -> Result<Option<Progress>, Failure> {
        let what = Failure::Malformed { what: "a metadata context" };
        let mut reader = Reader(data);
        let id = reader.u32().ok_or(what.clone())?;
        let name = string(reader.0).ok_or(what.clone())?;
        self.listed_bytes += data.len() + 64;
        if self.listed_bytes > LISTED_BYTES_MAX {
            return Err(Failure::TooLong { bytes: self.listed_bytes as u64, bytes_max: LISTED_BYTES_MAX as u64 });
        }
        if option == option::LIST_META_CONTEXT {
            self.findings.contexts.push(name);
        } else if self.contexts.iter().any(|context| context.id == id) {
            return Err(what);
        } else {
            self.contexts.push(Context { id, name });
        }
        Ok(None)
    }

    fn exported(&mut self, unit: &[u8]) -> Result<Option<Progress>, Failure> {
        let mut reader = Reader(unit);
        let size = reader.u64().unwrap_or_default();
        let flags = reader.u16().unwrap_or_default();
        Ok(Some(self.ready(Told { size, flags, ..Told::default() })))
    }

    fn ready(&mut self, told: Told) -> Progress {
        Progress::Ready(Box::new(Session::new(told, self.replies, std::mem::take(&mut self.contexts))))
    }
}

/// Appends an option as it is, for those who lead a handshake by hand.
pub fn send_option(option: u32, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

fn counted(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn string(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    (text.len() <= STRING_BYTES_MAX && !text.contains('\0')).then(|| text.to_owned())
}
