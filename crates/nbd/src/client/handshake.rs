//! The client side of the handshake: sends one option after the other, each after the reply to the
//! previous one.

use std::collections::VecDeque;

use crate::client::export_info::ExportInfo;
use crate::client::session::{Context, Session};
use crate::frame_buffer::FrameBuffer;
use crate::server::Replies;
use crate::wire::{
    EXPORT_NAME_ZEROES, GREETING_MAGIC, OLDSTYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_BYTES, OPTION_REPLY_MAGIC, Reader,
    STRING_BYTES_MAX, client_flags, handshake_flags, info, option, rep,
};

/// Maximum length of a reply to an option: two strings and their lengths.
const REPLY_BYTES_MAX: u32 = 2 * STRING_BYTES_MAX as u32 + 16;
/// Maximum total length of listed names and descriptions that are kept, in bytes.
const LISTED_BYTES_MAX: usize = 16 << 20;

/// Options of a client handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeOptions {
    /// Name of the export; the empty name is the default export.
    pub export: String,
    /// TLS policy.
    pub tls: TlsMode,
    /// Preferred format of replies. If the server does not support it, the next simpler format is
    /// used.
    pub replies: Replies,
    /// Metadata contexts to select, such as [`BASE_ALLOCATION`](crate::wire::BASE_ALLOCATION). They
    /// require structured replies.
    pub contexts: Vec<String>,
    /// Intended result of the handshake.
    pub goal: Goal,
}

/// TLS policy of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Uses plain text.
    Never,
    /// Uses TLS if the server supports it. An attacker between both sides can prevent it.
    IfOffered,
    /// Requires TLS.
    Always,
}

/// Intended result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Enters transmission with GO, or with EXPORT_NAME if the server does not support GO.
    Enter,
    /// Enters transmission with EXPORT_NAME.
    EnterByName,
    /// Collects the results of INFO and LIST_META_CONTEXT, then sends ABORT.
    Describe,
    /// Collects the results of LIST, then sends ABORT.
    List,
}

/// Result of processing a part of the server's bytes.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed; the input was consumed.
    More,
    /// The server acknowledged STARTTLS: switch to TLS and continue with [`Handshake::encrypted`].
    /// Unconsumed bytes belong to TLS.
    StartTls,
    /// The connection entered transmission. Unconsumed bytes belong to the session.
    Ready(Box<Session>),
    /// ABORT was acknowledged: close the connection. Some servers close without a reply; use
    /// [`Handshake::into_findings`] in that case.
    Over(Findings),
}

/// Results of a handshake that did not enter transmission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Names and descriptions from LIST.
    pub exports: Vec<(String, String)>,
    /// Properties of the export from INFO.
    pub info: Option<ExportInfo>,
    /// Metadata contexts that the export supports.
    pub contexts: Vec<String>,
}

/// Error of a handshake. If the protocol requires ABORT, it is in the output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// A magic number is wrong: the peer is no NBD server.
    #[error("wrong magic number {found:#x}, expected {wanted:#x}")]
    Magic {
        /// The received number.
        found: u64,
        /// The expected number.
        wanted: u64,
    },
    /// The server supports only the protocol from before 2011.
    #[error("the server supports only oldstyle NBD")]
    Oldstyle,
    /// The server lacks options, but the handshake needs more than EXPORT_NAME.
    #[error("the server does not support fixed newstyle: it can only enter an export in plain text")]
    NotFixed,
    /// The server refused an option.
    #[error("the server refused option {option} with {}{}{text}", rep::error_name(*kind), if text.is_empty() { "" } else { ": " })]
    Refused {
        /// Number of the option.
        option: u32,
        /// Type of the error: see [`rep`].
        kind: u32,
        /// Error text of the server.
        text: String,
    },
    /// A reply to another option, or of an unexpected type.
    #[error("unexpected reply {kind:#x} to option {option} while option {wanted} is pending")]
    Unexpected {
        /// Option of the reply.
        option: u32,
        /// Pending option.
        wanted: u32,
        /// Type of the reply.
        kind: u32,
    },
    /// The data of a reply are invalid.
    #[error("invalid data: {what}")]
    Malformed {
        /// Description of the data.
        what: &'static str,
    },
    /// A reply or a list exceeds the limit.
    #[error("{bytes} bytes of replies exceed the maximum of {bytes_max}")]
    TooLong {
        /// Claimed or received length.
        bytes: u64,
        /// The limit that the server exceeded.
        bytes_max: u64,
    },
    /// The handshake has already ended.
    #[error("the handshake is over")]
    Over,
}

/// The client side of a handshake.
#[derive(Debug)]
pub struct Handshake {
    options: HandshakeOptions,
    stage: Stage,
    unit: FrameBuffer,
    remaining_options: VecDeque<u32>,
    fixed: bool,
    no_zeroes: bool,
    encrypted: bool,
    replies: Replies,
    contexts: Vec<Context>,
    export_info: ExportInfo,
    has_size: bool,
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
    /// The reply to EXPORT_NAME, which has no header.
    Export,
    Encryption,
    Over,
}

impl Handshake {
    /// Starts a handshake; the server sends first.
    pub fn new(options: HandshakeOptions) -> Handshake {
        Handshake {
            options,
            stage: Stage::Greeting,
            unit: FrameBuffer::default(),
            remaining_options: VecDeque::new(),
            fixed: false,
            no_zeroes: false,
            encrypted: false,
            replies: Replies::Simple,
            contexts: Vec::new(),
            export_info: ExportInfo::default(),
            has_size: false,
            findings: Findings::default(),
            listed_bytes: 0,
        }
    }

    /// Processes input of the server. Returns the number of consumed bytes and the progress. Output
    /// is appended to `out`.
    ///
    /// # Errors
    /// Fails as described by [`HandshakeError`]. The caller must then send the output and close the
    /// connection.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), HandshakeError> {
        let mut rest = input;
        let result = self.step(&mut rest, out);
        if result.is_err() || matches!(result, Ok(Progress::Ready(_) | Progress::Over(_))) {
            self.stage = Stage::Over;
        }
        result.map(|progress| (input.len() - rest.len(), progress))
    }

    /// Continues after the switch to TLS; negotiation restarts.
    pub fn encrypted(&mut self, out: &mut Vec<u8>) {
        self.encrypted = true;
        self.unit = FrameBuffer::default();
        self.plan_options();
        self.next_option(out);
    }

    /// Returns the results up to now.
    pub fn into_findings(self) -> Findings {
        self.findings
    }

    /// Memory for incomplete input in bytes: at most 8208.
    pub fn buffered_bytes(&self) -> usize {
        self.unit.capacity()
    }

    fn step(&mut self, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<Progress, HandshakeError> {
        loop {
            let wanted = match self.stage {
                Stage::Greeting => 18,
                Stage::Header(_) => OPTION_REPLY_BYTES,
                Stage::Data { bytes, .. } => bytes,
                Stage::Export => 10 + if self.no_zeroes { 0 } else { EXPORT_NAME_ZEROES },
                Stage::Encryption => return Ok(Progress::StartTls),
                Stage::Over => return Err(HandshakeError::Over),
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

    fn greeting(&mut self, unit: &[u8], out: &mut Vec<u8>) -> Result<Option<Progress>, HandshakeError> {
        let mut reader = Reader(unit);
        for wanted in [GREETING_MAGIC, OPTION_MAGIC] {
            match reader.u64().unwrap_or_default() {
                OLDSTYLE_MAGIC => return Err(HandshakeError::Oldstyle),
                found if found != wanted => return Err(HandshakeError::Magic { found, wanted }),
                _ => {}
            }
        }
        let flags = reader.u16().unwrap_or_default();
        self.fixed = flags & handshake_flags::FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & handshake_flags::NO_ZEROES != 0;
        let fixed = if self.fixed { client_flags::FIXED_NEWSTYLE } else { 0 };
        let no_zeroes = if self.no_zeroes { client_flags::NO_ZEROES } else { 0 };
        let enters = matches!(self.options.goal, Goal::Enter | Goal::EnterByName);
        if !self.fixed && (!enters || self.options.tls == TlsMode::Always) {
            return Err(HandshakeError::NotFixed);
        }
        out.extend_from_slice(&(fixed | no_zeroes).to_be_bytes());
        self.plan_options();
        self.next_option(out);
        Ok(None)
    }

    /// Determines the options to send if each is granted.
    fn plan_options(&mut self) {
        self.remaining_options.clear();
        if !self.fixed {
            self.remaining_options.push_back(option::EXPORT_NAME);
            return;
        }
        if self.options.tls != TlsMode::Never && !self.encrypted {
            self.remaining_options.push_back(option::STARTTLS);
        }
        match self.options.replies {
            Replies::Simple => {}
            Replies::Structured => self.remaining_options.push_back(option::STRUCTURED_REPLY),
            Replies::Extended => self.remaining_options.push_back(option::EXTENDED_HEADERS),
        }
        let enters = matches!(self.options.goal, Goal::Enter | Goal::EnterByName);
        if enters && !self.options.contexts.is_empty() && self.options.replies != Replies::Simple {
            self.remaining_options.push_back(option::SET_META_CONTEXT);
        }
        self.remaining_options.extend(match self.options.goal {
            Goal::Enter => &[option::GO][..],
            Goal::EnterByName => &[option::EXPORT_NAME],
            Goal::Describe if self.options.replies == Replies::Simple => &[option::INFO, option::ABORT],
            Goal::Describe => &[option::INFO, option::LIST_META_CONTEXT, option::ABORT],
            Goal::List => &[option::LIST, option::ABORT],
        });
    }

    fn next_option(&mut self, out: &mut Vec<u8>) {
        let option = loop {
            let option = self.remaining_options.pop_front().unwrap_or(option::ABORT);
            let meta = matches!(option, option::SET_META_CONTEXT | option::LIST_META_CONTEXT);
            if !meta || self.replies != Replies::Simple {
                break option;
            }
        };
        let mut data = Vec::new();
        let name = self.options.export.as_bytes();
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
                data.extend_from_slice(&(self.options.contexts.len() as u32).to_be_bytes());
                for query in &self.options.contexts {
                    counted(query.as_bytes(), &mut data);
                }
            }
            _ => {}
        }
        send_option(option, &data, out);
        self.stage = if option == option::EXPORT_NAME { Stage::Export } else { Stage::Header(option) };
    }

    fn header(&mut self, wanted: u32, unit: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let mut reader = Reader(unit);
        let found = reader.u64().unwrap_or_default();
        let [option, kind, bytes] = [0; 3].map(|_: u32| reader.u32().unwrap_or_default());
        if found != OPTION_REPLY_MAGIC {
            return Err(HandshakeError::Magic { found, wanted: OPTION_REPLY_MAGIC });
        }
        if option != wanted {
            return Err(HandshakeError::Unexpected { option, wanted, kind });
        }
        if bytes > REPLY_BYTES_MAX {
            return Err(HandshakeError::TooLong { bytes: bytes.into(), bytes_max: REPLY_BYTES_MAX.into() });
        }
        self.stage = Stage::Data { option, kind, bytes: bytes as usize };
        Ok(None)
    }

    fn reply(
        &mut self,
        option: u32,
        kind: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Progress>, HandshakeError> {
        self.stage = Stage::Header(option);
        if kind & rep::ERROR_BIT != 0 {
            return self.refused(option, kind, data, out);
        }
        match (kind, option) {
            (rep::ACK, _) if data.is_empty() => self.granted(option, out),
            (rep::ACK, _) => Err(HandshakeError::Malformed { what: "an acknowledgement with data" }),
            (rep::SERVER, option::LIST) => self.listed(data),
            (rep::INFO, option::INFO | option::GO) => self.info(data),
            (rep::META_CONTEXT, option::SET_META_CONTEXT | option::LIST_META_CONTEXT) => self.context(option, data),
            _ => Err(HandshakeError::Unexpected { option, wanted: option, kind }),
        }
    }

    fn granted(&mut self, option: u32, out: &mut Vec<u8>) -> Result<Option<Progress>, HandshakeError> {
        match option {
            option::STARTTLS => {
                self.stage = Stage::Encryption;
                return Ok(None);
            }
            option::STRUCTURED_REPLY => self.replies = Replies::Structured,
            option::EXTENDED_HEADERS => self.replies = Replies::Extended,
            option::GO | option::INFO => {
                if !std::mem::take(&mut self.has_size) {
                    return Err(HandshakeError::Malformed { what: "information without the size" });
                }
                let info = std::mem::take(&mut self.export_info);
                if option == option::GO {
                    return Ok(Some(self.ready(info)));
                }
                self.findings.info = Some(info);
            }
            option::ABORT => return Ok(Some(Progress::Over(std::mem::take(&mut self.findings)))),
            _ => {}
        }
        self.next_option(out);
        Ok(None)
    }

    /// Handles a refused option: continues without it if possible.
    fn refused(
        &mut self,
        option: u32,
        kind: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Progress>, HandshakeError> {
        self.export_info = ExportInfo::default();
        self.has_size = false;
        match option {
            _ if kind == rep::ERR_SHUTDOWN => {}
            option::STARTTLS if self.options.tls == TlsMode::IfOffered => {
                self.next_option(out);
                return Ok(None);
            }
            option::EXTENDED_HEADERS if kind == rep::ERR_UNSUP => {
                self.remaining_options.push_front(option::STRUCTURED_REPLY);
                self.next_option(out);
                return Ok(None);
            }
            option::STRUCTURED_REPLY if kind == rep::ERR_UNSUP => {
                self.next_option(out);
                return Ok(None);
            }
            // Continues without metadata; an invalid export is reported by GO.
            option::SET_META_CONTEXT | option::LIST_META_CONTEXT => {
                self.contexts.clear();
                self.findings.contexts.clear();
                self.next_option(out);
                return Ok(None);
            }
            option::GO if kind == rep::ERR_UNSUP => {
                self.remaining_options = VecDeque::from([option::EXPORT_NAME]);
                self.next_option(out);
                return Ok(None);
            }
            _ => {}
        }
        if option != option::ABORT {
            send_option(option::ABORT, &[], out);
        }
        Err(HandshakeError::Refused { option, kind, text: String::from_utf8_lossy(data).into_owned() })
    }

    fn listed(&mut self, data: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let what = HandshakeError::Malformed { what: "an entry of the list" };
        let mut reader = Reader(data);
        let name = reader.counted().and_then(string).ok_or(what)?;
        let description = String::from_utf8_lossy(reader.0).into_owned();
        self.listed_bytes += data.len() + 64;
        if self.listed_bytes > LISTED_BYTES_MAX {
            return Err(HandshakeError::TooLong {
                bytes: self.listed_bytes as u64,
                bytes_max: LISTED_BYTES_MAX as u64,
            });
        }
        self.findings.exports.push((name, description));
        Ok(None)
    }

    fn info(&mut self, data: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let what = HandshakeError::Malformed { what: "information about the export" };
        let mut reader = Reader(data);
        match (reader.u16().ok_or(what.clone())?, data.len()) {
            (info::EXPORT, 12) => {
                self.export_info.size = reader.u64().ok_or(what.clone())?;
                self.export_info.flags = reader.u16().ok_or(what)?;
                self.has_size = true;
            }
            (info::BLOCK_SIZE, 14) => {
                let [min, preferred, most] = [0; 3].map(|_: u32| reader.u32().unwrap_or_default());
                let sane = min.is_power_of_two() && min <= 1 << 16 && preferred.is_power_of_two();
                if !sane || preferred < min.max(512) || most < preferred {
                    return Err(HandshakeError::Malformed { what: "the sizes of blocks" });
                }
                self.export_info.block_sizes = Some((min, preferred, most));
            }
            (info::EXPORT | info::BLOCK_SIZE, _) => return Err(what),
            (info::NAME, _) => self.export_info.name = Some(string(reader.0).ok_or(what)?),
            (info::DESCRIPTION, _) => self.export_info.description = Some(string(reader.0).ok_or(what)?),
            // Unknown items must be ignored.
            _ => {}
        }
        Ok(None)
    }

    fn context(&mut self, option: u32, data: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let what = HandshakeError::Malformed { what: "a metadata context" };
        let mut reader = Reader(data);
        let id = reader.u32().ok_or(what.clone())?;
        let name = string(reader.0).ok_or(what.clone())?;
        self.listed_bytes += data.len() + 64;
        if self.listed_bytes > LISTED_BYTES_MAX {
            return Err(HandshakeError::TooLong {
                bytes: self.listed_bytes as u64,
                bytes_max: LISTED_BYTES_MAX as u64,
            });
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

    fn exported(&mut self, unit: &[u8]) -> Result<Option<Progress>, HandshakeError> {
        let mut reader = Reader(unit);
        let size = reader.u64().unwrap_or_default();
        let flags = reader.u16().unwrap_or_default();
        Ok(Some(self.ready(ExportInfo { size, flags, ..ExportInfo::default() })))
    }

    fn ready(&mut self, info: ExportInfo) -> Progress {
        Progress::Ready(Box::new(Session::new(info, self.replies, std::mem::take(&mut self.contexts))))
    }
}

/// Appends an option without checks, for handshakes that tests control step by step.
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
