//! The handshake: greeting, options, until a client has chosen an export.

use crate::server::option::{InfoRequest, MetaRequest, Refusal, name, reply};
use crate::server::replies::BASE_ALLOCATION_ID;
use crate::server::{Replies, Session};
use crate::unit::Unit;
use crate::wire::{
    BASE_ALLOCATION, EXPORT_NAME_ZEROES, GREETING_MAGIC, OPTION_BYTES, OPTION_MAGIC, Reader, client_flags, fitting,
    handshake_flags, info, option, rep,
};
use crate::{Export, Limits};

/// The exports that a client may see. Whoever answers knows who asks.
pub trait Catalogue {
    /// Names and descriptions for LIST.
    fn list(&self) -> Vec<(String, String)>;
    /// The export of this name.
    fn find(&self, name: &str) -> Option<Export>;
}

/// Whether a connection is encrypted, can be, must be. It cannot change while a connection lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The server has no certificate: STARTTLS is refused (the protocol's NOTLS).
    Off,
    /// A client may, and must for exports that are [`tls_only`](Export::tls_only) (SELECTIVETLS).
    Offered,
    /// Nothing but STARTTLS and ABORT is answered before (FORCEDTLS).
    Required,
}

/// Where a handshake stands after some bytes.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed; all that were given are used.
    More,
    /// STARTTLS was acknowledged: once the reply is sent, what follows is TLS. Bytes that came after the option in plain text are an attack and
    /// close the connection. Go on with [`Handshake::encrypted`].
    StartTls,
    /// An export was chosen. Bytes that were not used are the first requests.
    Ready(Box<Session>),
    /// The client said goodbye (ABORT): send what is to be sent, then close.
    Aborted,
    /// The client broke the protocol where no error can be answered: close.
    Violated(Violation),
}

/// Why a server closes a connection without another word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A magic number is wrong.
    #[error("wrong magic number {found:#x} where {wanted:#x} belongs")]
    Magic {
        /// What was found.
        found: u64,
        /// What belongs there.
        wanted: u64,
    },
    /// The client answered the greeting with flags that were not offered.
    #[error("unknown client flags {flags:#x}")]
    ClientFlags {
        /// All that it sent.
        flags: u32,
    },
    /// Only EXPORT_NAME may be used by a client that does not speak fixed newstyle.
    #[error("option {option} from a client that does not speak fixed newstyle")]
    NotFixed {
        /// The option.
        option: u32,
    },
    /// EXPORT_NAME asked for what is not to be had, and this option cannot be answered with an error.
    #[error("EXPORT_NAME: {why}")]
    Unavailable {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Plain bytes came between STARTTLS and its acknowledgement: somebody in the middle put them there.
    #[error("bytes in plain text behind STARTTLS")]
    Injected,
    /// A client that never comes to the point.
    #[error("more than {options_max} options")]
    Options {
        /// [`Limits::options_max`].
        options_max: u32,
    },
    /// Options that are too long.
    #[error("an option of {bytes} bytes, with at most {bytes_max} bytes of overlong options to be skipped")]
    Skipped {
        /// What the option claims.
        bytes: u32,
        /// [`Limits::skipped_bytes_max`].
        bytes_max: u64,
    },
    /// A payload that is too long even to be thrown away.
    #[error("a payload of {bytes} bytes; the most is {bytes_max}")]
    Payload {
        /// What the request claims.
        bytes: u64,
        /// The greater of the export's largest payload and [`Limits::discarded_bytes_max`].
        bytes_max: u32,
    },
    /// Bytes after the handshake's end.
    #[error("the handshake is over")]
    Over,
}

/// A handshake under way.
///
/// It keeps what came of the unit that is not whole yet: 16 bytes or the data of one option, so at most [`Limits::option_bytes_max`].
#[derive(Debug)]
pub struct Handshake {
    tls: Tls,
    limits: Limits,
    stage: Stage,
    unit: Unit,
    fixed: bool,
    no_zeroes: bool,
    encrypted: bool,
    leaving: bool,
    options: u32,
    skipped_bytes: u64,
    reply_bytes: u64,
    agreed: Agreed,
}

/// What STARTTLS undoes.
#[derive(Debug, Default)]
struct Agreed {
    structured: bool,
    extended: bool,
    /// The export that `base:allocation` was chosen for.
    base_allocation: Option<String>,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Stage {
    ClientFlags,
    Header,
    Data { option: u32, bytes: usize },
    Skip { option: u32, left: u64 },
    Encryption,
    Over,
}

impl Handshake {
    /// A new connection; `out` gets the greeting.
    pub fn new(tls: Tls, limits: Limits, out: &mut Vec<u8>) -> Handshake {
        out.extend_from_slice(&GREETING_MAGIC.to_be_bytes());
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&(handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES).to_be_bytes());
        Handshake {
            tls,
            limits,
            stage: Stage::ClientFlags,
            unit: Unit::default(),
            fixed: false,
            no_zeroes: false,
            encrypted: false,
            leaving: false,
            options: 0,
            skipped_bytes: 0,
            reply_bytes: 0,
            agreed: Agreed::default(),
        }
    }

    /// Takes bytes; answers how many of them were used (call again with the rest and what has come since) and where things stand. Replies
    /// go to `out`, also those that belong before a [`Progress::Violated`].
    pub fn receive(&mut self, input: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> (usize, Progress) {
        let mut rest = input;
        loop {
            let step = match self.stage {
                Stage::Over => Some(Progress::Violated(Violation::Over)),
                Stage::Encryption if rest.is_empty() => Some(Progress::StartTls),
                Stage::Encryption => Some(Progress::Violated(Violation::Injected)),
                Stage::Skip { option, left } => {
                    let skipped = left.min(rest.len() as u64);
                    rest = rest.get(skipped as usize..).unwrap_or_default();
                    self.skipped(option, left - skipped, out)
                }
                Stage::ClientFlags => {
                    if !self.unit.collect(&mut rest, 4) {
                        break;
                    }
                    self.client_flags()
                }
                Stage::Header => {
                    if !self.unit.collect(&mut rest, OPTION_BYTES) {
                        break;
                    }
                    self.header()
                }
                Stage::Data { option, bytes } => {
                    if !self.unit.collect(&mut rest, bytes) {
                        break;
                    }
                    self.data(option, catalogue, out)
                }
            };
            if let Some(progress) = step {
                if !matches!(progress, Progress::StartTls | Progress::More) {
                    self.stage = Stage::Over;
                }
                return (input.len() - rest.len(), progress);
            }
            if rest.is_empty() && matches!(self.stage, Stage::Skip { .. }) {
                break;
            }
        }
        (input.len() - rest.len(), Progress::More)
    }

    /// The connection is encrypted now. Whatever was agreed on before is forgotten, as the protocol demands.
    pub fn encrypted(&mut self) {
        self.encrypted = true;
        self.agreed = Agreed::default();
        self.unit = Unit::default();
        self.stage = Stage::Header;
    }

    /// The server is going away: all options but ABORT are answered with ERR_SHUTDOWN from now on.
    pub fn shut_down(&mut self) {
        self.leaving = true;
    }

    /// Bytes of memory that are held for what is not whole yet: at most [`Limits::option_bytes_max`], or 4096 if that is less.
    pub fn buffered_bytes(&self) -> usize {
        self.unit.capacity()
    }

    fn client_flags(&mut self) -> Option<Progress> {
        let unit = self.unit.take();
        let flags = Reader(&unit).u32().unwrap_or_default();
        self.unit.reuse(unit);
        if flags & !(client_flags::FIXED_NEWSTYLE | client_flags::NO_ZEROES) != 0 {
            return Some(Progress::Violated(Violation::ClientFlags { flags }));
        }
        self.fixed = flags & client_flags::FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & client_flags::NO_ZEROES != 0;
        self.stage = Stage::Header;
        None
    }

    fn header(&mut self) -> Option<Progress> {
        let unit = self.unit.take();
        let mut reader = Reader(&unit);
        let found = reader.u64().unwrap_or_default();
        let option = reader.u32().unwrap_or_default();
        let bytes = reader.u32().unwrap_or_default();
        self.unit.reuse(unit);
        if found != OPTION_MAGIC {
            return Some(Progress::Violated(Violation::Magic { found, wanted: OPTION_MAGIC }));
        }
        if !self.fixed && option != option::EXPORT_NAME {
            return Some(Progress::Violated(Violation::NotFixed { option }));
        }
        self.options = self.options.saturating_add(1);
        if self.options > self.limits.options_max {
            return Some(Progress::Violated(Violation::Options { options_max: self.limits.options_max }));
        }
        if bytes <= self.limits.option_bytes_max {
            self.stage = Stage::Data { option, bytes: bytes as usize };
            return None;
        }
        if option == option::EXPORT_NAME {
            return Some(Progress::Violated(Violation::Unavailable { why: "the export's name is too long" }));
        }
        self.skipped_bytes += u64::from(bytes);
        if self.skipped_bytes > self.limits.skipped_bytes_max {
            let bytes_max = self.limits.skipped_bytes_max;
            return Some(Progress::Violated(Violation::Skipped { bytes, bytes_max }));
        }
        self.stage = Stage::Skip { option, left: bytes.into() };
        None
    }

    fn skipped(&mut self, option: u32, left: u64, out: &mut Vec<u8>) -> Option<Progress> {
        self.stage = Stage::Skip { option, left };
        if left > 0 {
            return None;
        }
        self.stage = Stage::Header;
        if option == option::ABORT {
            reply(option, rep::ACK, &[], out);
            return Some(Progress::Aborted);
        }
        if option == option::SET_META_CONTEXT {
            self.agreed.base_allocation = None;
        }
        let too_big = (rep::ERR_TOO_BIG, "the option's data are too long");
        self.refuse(option, self.barred(option).unwrap_or(too_big), out)
    }

    fn data(&mut self, option: u32, catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Option<Progress> {
        let data = self.unit.take();
        self.stage = Stage::Header;
        let progress = self.option(option, &data, catalogue, out);
        self.unit.reuse(data);
        progress
    }

    fn option(&mut self, option: u32, data: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Option<Progress> {
        let barred = self.barred(option);
        if option == option::EXPORT_NAME {
            return Some(match barred {
                Some((_, why)) => Progress::Violated(Violation::Unavailable { why }),
                None => self.export_name(data, catalogue, out),
            });
        }
        if option == option::SET_META_CONTEXT {
            // Also when it fails.
            self.agreed.base_allocation = None;
        }
        if let Some(refusal) = barred {
            return self.refuse(option, refusal, out);
        }
        let outcome = match option {
            option::ABORT => {
                reply(option, rep::ACK, &[], out);
                return Some(Progress::Aborted);
            }
            option::LIST => self.list(data, catalogue, out),
            option::STARTTLS => match self.start_tls(data) {
                Ok(()) => {
                    reply(option, rep::ACK, &[], out);
                    self.stage = Stage::Encryption;
                    return None;
                }
                Err(refusal) => Err(refusal),
            },
            option::INFO | option::GO => match self.info(option, data, catalogue, out) {
                Ok(Some(session)) => return Some(Progress::Ready(session)),
                Ok(None) => Ok(()),
                Err(refusal) => Err(refusal),
            },
            option::STRUCTURED_REPLY => self.structured_reply(data),
            option::EXTENDED_HEADERS => self.extended_headers(data),
            _ => self.meta_context(option, data, catalogue, out),
        };
        match outcome {
            Ok(()) => reply(option, rep::ACK, &[], out),
            Err(refusal) => return self.refuse(option, refusal, out),
        }
        None
    }

    /// Why an option is refused whatever it says.
    fn barred(&self, option: u32) -> Option<Refusal> {
        let known = matches!(option, option::EXPORT_NAME..=option::LIST | option::STARTTLS..=option::EXTENDED_HEADERS);
        let free = option == option::ABORT;
        if self.leaving && !free {
            return Some((rep::ERR_SHUTDOWN, "the server is going away"));
        }
        if self.tls == Tls::Required && !self.encrypted && !free && option != option::STARTTLS {
            // A client without fixed newstyle cannot be told: its EXPORT_NAME closes the connection.
            return Some((rep::ERR_TLS_REQD, "the server insists on TLS"));
        }
        (!known).then_some((rep::ERR_UNSUP, "the option is unknown"))
    }

    fn refuse(&mut self, option: u32, (kind, text): Refusal, out: &mut Vec<u8>) -> Option<Progress> {
        reply(option, kind, &[text.as_bytes()], out);
        None
    }

    fn export_name(&mut self, data: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Progress {
        let unavailable = |why| Progress::Violated(Violation::Unavailable { why });
        let name = match name(data, self.limits.name_bytes_max) {
            Ok(name) => name,
            Err((_, why)) => return unavailable(why),
        };
        let export = match self.find(name, catalogue) {
            Ok(export) => export,
            Err((_, why)) => return unavailable(why),
        };
        out.extend_from_slice(&export.size.to_be_bytes());
        out.extend_from_slice(&export.abilities.flags(self.agreed.structured).to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_ZEROES]);
        }
        Progress::Ready(self.session(name, export))
    }

    fn list(&mut self, data: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Result<(), Refusal> {
        no_data(data)?;
        let start = out.len();
        for (name, description) in catalogue.list() {
            let in_plain = self.tls != Tls::Required && !self.encrypted;
            if in_plain && catalogue.find(&name).is_some_and(|export| export.tls_only) {
                continue;
            }
            let length = (name.len() as u32).to_be_bytes();
            let parts: [&[u8]; 3] = [&length, name.as_bytes(), fitting(&description).as_bytes()];
            reply(option::LIST, rep::SERVER, &parts, out);
            if self.reply_bytes + (out.len() - start) as u64 > self.limits.reply_bytes_max {
                break;
            }
        }
        self.spend(start, out)
    }

    fn start_tls(&mut self, data: &[u8]) -> Result<(), Refusal> {
        if self.encrypted {
            return Err((rep::ERR_INVALID, "the connection is encrypted already"));
        }
        if self.tls == Tls::Off {
            return Err((rep::ERR_POLICY, "the server has no TLS"));
        }
        no_data(data)
    }

    fn structured_reply(&mut self, data: &[u8]) -> Result<(), Refusal> {
        no_data(data)?;
        if self.agreed.structured {
            return Err((rep::ERR_INVALID, "structured replies are agreed on already"));
        }
        self.agreed.structured = true;
        Ok(())
    }

    /// Extended headers include structured replies, which may have been agreed on before.
    fn extended_headers(&mut self, data: &[u8]) -> Result<(), Refusal> {
        no_data(data)?;
        if self.agreed.extended {
            return Err((rep::ERR_INVALID, "extended headers are agreed on already"));
        }
        self.agreed.structured = true;
        self.agreed.extended = true;
        Ok(())
    }

    fn info(
        &mut self,
        option: u32,
        data: &[u8],
        catalogue: &dyn Catalogue,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Session>>, Refusal> {
        let request = InfoRequest::read(data, self.limits.name_bytes_max)?;
        let export = self.find(request.name, catalogue)?;
        let start = out.len();
        self.tell(option, &request, &export, out);
        if option == option::INFO {
            self.spend(start, out)?;
            return Ok(None);
        }
        reply(option, rep::ACK, &[], out);
        Ok(Some(self.session(request.name, export)))
    }

    fn tell(&self, option: u32, request: &InfoRequest<'_>, export: &Export, out: &mut Vec<u8>) {
        let size = export.size.to_be_bytes();
        let flags = export.abilities.flags(self.agreed.structured).to_be_bytes();
        reply(option, rep::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags], out);
        if request.wants_name {
            reply(option, rep::INFO, &[&info::NAME.to_be_bytes(), fitting(&export.name).as_bytes()], out);
        }
        if request.wants_description && !export.description.is_empty() {
            let text = fitting(&export.description);
            reply(option, rep::INFO, &[&info::DESCRIPTION.to_be_bytes(), text.as_bytes()], out);
        }
        if request.wants_block_size || export.has_unusual_blocks() {
            let sizes = [export.block_min, export.block_preferred, export.payload_max].map(u32::to_be_bytes);
            reply(option, rep::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), sizes.as_flattened()], out);
        }
    }

    fn meta_context(
        &mut self,
        option: u32,
        data: &[u8],
        catalogue: &dyn Catalogue,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        if !self.agreed.structured {
            return Err((rep::ERR_INVALID, "metadata contexts need structured replies"));
        }
        let request = MetaRequest::read(option, data, self.limits.name_bytes_max)?;
        // Here the protocol does not let TLS be asked for: what needs it is not there.
        let unknown = (rep::ERR_UNKNOWN, "there is no such export");
        let export = self.find(request.name, catalogue).map_err(|_| unknown)?;
        if !request.base_allocation || !export.abilities.block_status {
            return Ok(());
        }
        let setting = option == option::SET_META_CONTEXT;
        let id = if setting { BASE_ALLOCATION_ID } else { 0 };
        reply(option, rep::META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION.as_bytes()], out);
        if setting {
            self.agreed.base_allocation = Some(request.name.to_owned());
        }
        Ok(())
    }

    fn find(&self, name: &str, catalogue: &dyn Catalogue) -> Result<Export, Refusal> {
        match catalogue.find(name) {
            Some(export) if !export.tls_only || self.encrypted => Ok(export),
            // A server without TLS must not ask for it.
            Some(_) if self.tls != Tls::Off => Err((rep::ERR_TLS_REQD, "the export insists on TLS")),
            _ => Err((rep::ERR_UNKNOWN, "there is no such export")),
        }
    }

    /// Counts what was answered since `start`; takes it back where it is too much.
    fn spend(&mut self, start: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.reply_bytes += (out.len() - start) as u64;
        if self.reply_bytes <= self.limits.reply_bytes_max {
            return Ok(());
        }
        self.reply_bytes -= (out.len() - start) as u64;
        out.truncate(start);
        Err((rep::ERR_TOO_BIG, "the reply is too large"))
    }

    fn session(&self, name: &str, export: Export) -> Box<Session> {
        let replies = match (self.agreed.extended, self.agreed.structured) {
            (true, _) => Replies::Extended,
            (false, true) => Replies::Structured,
            (false, false) => Replies::Simple,
        };
        let base_allocation = self.agreed.base_allocation.as_deref() == Some(name);
        Box::new(Session { export, replies, base_allocation, limits: self.limits })
    }
}

fn no_data(data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() { Ok(()) } else { Err((rep::ERR_INVALID, "the option has no data")) }
}
