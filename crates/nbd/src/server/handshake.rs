//! The server side of the handshake: greeting and options, until a client has chosen an export.

use crate::frame_buffer::FrameBuffer;
use crate::server::option::{InfoRequest, MetaRequest, Refusal, name, reply};
use crate::server::replies::BASE_ALLOCATION_ID;
use crate::server::session::{Replies, Session};
use crate::server::violation::Violation;
use crate::wire::{
    BASE_ALLOCATION, EXPORT_NAME_ZEROES, GREETING_MAGIC, OPTION_BYTES, OPTION_MAGIC, Reader, client_flags, fitting,
    handshake_flags, info, option, rep,
};
use crate::{Export, Limits};

/// The exports that are visible to a client. The implementation decides by the client's identity.
pub trait Catalogue {
    /// Returns names and descriptions for LIST.
    fn list(&self) -> Vec<(String, String)>;
    /// Returns the export with a name.
    fn find(&self, name: &str) -> Option<Export>;
}

/// TLS policy of a connection; constant for the lifetime of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// STARTTLS is refused because the server has no certificate (the protocol's NOTLS).
    Off,
    /// TLS is optional, but required for exports with [`tls_only`](Export::tls_only)
    /// (SELECTIVETLS).
    Offered,
    /// Before encryption, only STARTTLS and ABORT are accepted (FORCEDTLS).
    Required,
}

/// Result of processing a part of the client's bytes.
#[derive(Debug)]
pub enum Progress {
    /// More bytes are needed; the input was consumed.
    More,
    /// STARTTLS was acknowledged: after the reply is sent, the connection switches to TLS. Plain
    /// bytes after the option are an injection attack and close the connection. Continue with
    /// [`Handshake::encrypted`].
    StartTls,
    /// An export was chosen. Unconsumed bytes are the first requests.
    Ready(Box<Session>),
    /// The client sent ABORT: send the output, then close the connection.
    Aborted,
    /// The client violated the protocol where no error reply is possible: close the connection.
    Violated(Violation),
}

/// The server side of a handshake.
///
/// Incomplete input is buffered: 16 bytes or the data of one option, at most
/// [`Limits::option_bytes_max`].
#[derive(Debug)]
pub struct Handshake {
    tls: Tls,
    limits: Limits,
    stage: Stage,
    unit: FrameBuffer,
    fixed: bool,
    no_zeroes: bool,
    encrypted: bool,
    shutting_down: bool,
    options: u32,
    skipped_bytes: u64,
    reply_bytes: u64,
    negotiated: Negotiated,
}

/// Negotiated options, which STARTTLS resets.
#[derive(Debug, Default)]
struct Negotiated {
    structured: bool,
    extended: bool,
    /// Name of the export for which `base:allocation` was selected.
    base_allocation: Option<String>,
}

/// The next expected input.
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
    /// Starts a handshake on a new connection and writes the greeting to `out`.
    pub fn new(tls: Tls, limits: Limits, out: &mut Vec<u8>) -> Handshake {
        out.extend_from_slice(&GREETING_MAGIC.to_be_bytes());
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&(handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES).to_be_bytes());
        Handshake {
            tls,
            limits,
            stage: Stage::ClientFlags,
            unit: FrameBuffer::default(),
            fixed: false,
            no_zeroes: false,
            encrypted: false,
            shutting_down: false,
            options: 0,
            skipped_bytes: 0,
            reply_bytes: 0,
            negotiated: Negotiated::default(),
        }
    }

    /// Processes input. Returns the number of consumed bytes and the progress; the caller passes
    /// the remaining bytes again, with newer ones. Replies are written to `out`, including those
    /// before a [`Progress::Violated`].
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

    /// Continues after the switch to TLS. Earlier negotiations are reset, as the protocol requires.
    pub fn encrypted(&mut self) {
        self.encrypted = true;
        self.negotiated = Negotiated::default();
        self.unit = FrameBuffer::default();
        self.stage = Stage::Header;
    }

    /// Starts the shutdown: all further options except ABORT are answered with ERR_SHUTDOWN.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Memory for incomplete input in bytes: at most [`Limits::option_bytes_max`], or 4096 if that
    /// is less.
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
            self.negotiated.base_allocation = None;
        }
        let too_big = (rep::ERR_TOO_BIG, "the option's data are too long");
        self.refuse(option, self.general_refusal(option).unwrap_or(too_big), out)
    }

    fn data(&mut self, option: u32, catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Option<Progress> {
        let data = self.unit.take();
        self.stage = Stage::Header;
        let progress = self.option(option, &data, catalogue, out);
        self.unit.reuse(data);
        progress
    }

    fn option(&mut self, option: u32, data: &[u8], catalogue: &dyn Catalogue, out: &mut Vec<u8>) -> Option<Progress> {
        let general_refusal = self.general_refusal(option);
        if option == option::EXPORT_NAME {
            return Some(match general_refusal {
                Some((_, why)) => Progress::Violated(Violation::Unavailable { why }),
                None => self.export_name(data, catalogue, out),
            });
        }
        if option == option::SET_META_CONTEXT {
            // A failing SET_META_CONTEXT also clears the selection.
            self.negotiated.base_allocation = None;
        }
        if let Some(refusal) = general_refusal {
            return self.refuse(option, refusal, out);
        }
        let result = match option {
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
        match result {
            Ok(()) => reply(option, rep::ACK, &[], out),
            Err(refusal) => return self.refuse(option, refusal, out),
        }
        None
    }

    /// Returns the refusal that applies to an option regardless of its data.
    fn general_refusal(&self, option: u32) -> Option<Refusal> {
        let known = matches!(option, option::EXPORT_NAME..=option::LIST | option::STARTTLS..=option::EXTENDED_HEADERS);
        let free = option == option::ABORT;
        if self.shutting_down && !free {
            return Some((rep::ERR_SHUTDOWN, "the server is shutting down"));
        }
        if self.tls == Tls::Required && !self.encrypted && !free && option != option::STARTTLS {
            // A client without fixed newstyle cannot receive this error: EXPORT_NAME closes the
            // connection.
            return Some((rep::ERR_TLS_REQD, "the server requires TLS"));
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
        out.extend_from_slice(&export.abilities.flags(self.negotiated.structured).to_be_bytes());
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
            return Err((rep::ERR_INVALID, "the connection is already encrypted"));
        }
        if self.tls == Tls::Off {
            return Err((rep::ERR_POLICY, "the server has no TLS"));
        }
        no_data(data)
    }

    fn structured_reply(&mut self, data: &[u8]) -> Result<(), Refusal> {
        no_data(data)?;
        if self.negotiated.structured {
            return Err((rep::ERR_INVALID, "structured replies are already negotiated"));
        }
        self.negotiated.structured = true;
        Ok(())
    }

    /// Extended headers include structured replies, which may have been negotiated before.
    fn extended_headers(&mut self, data: &[u8]) -> Result<(), Refusal> {
        no_data(data)?;
        if self.negotiated.extended {
            return Err((rep::ERR_INVALID, "extended headers are already negotiated"));
        }
        self.negotiated.structured = true;
        self.negotiated.extended = true;
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
        self.write_info(option, &request, &export, out);
        if option == option::INFO {
            self.spend(start, out)?;
            return Ok(None);
        }
        reply(option, rep::ACK, &[], out);
        Ok(Some(self.session(request.name, export)))
    }

    fn write_info(&self, option: u32, request: &InfoRequest<'_>, export: &Export, out: &mut Vec<u8>) {
        let size = export.size.to_be_bytes();
        let flags = export.abilities.flags(self.negotiated.structured).to_be_bytes();
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
        if !self.negotiated.structured {
            return Err((rep::ERR_INVALID, "metadata contexts need structured replies"));
        }
        let request = MetaRequest::read(option, data, self.limits.name_bytes_max)?;
        // The protocol does not allow a TLS error here: exports that require TLS are reported as
        // unknown.
        let unknown = (rep::ERR_UNKNOWN, "there is no such export");
        let export = self.find(request.name, catalogue).map_err(|_| unknown)?;
        if !request.base_allocation || !export.abilities.block_status {
            return Ok(());
        }
        let setting = option == option::SET_META_CONTEXT;
        let id = if setting { BASE_ALLOCATION_ID } else { 0 };
        reply(option, rep::META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION.as_bytes()], out);
        if setting {
            self.negotiated.base_allocation = Some(request.name.to_owned());
        }
        Ok(())
    }

    fn find(&self, name: &str, catalogue: &dyn Catalogue) -> Result<Export, Refusal> {
        match catalogue.find(name) {
            Some(export) if !export.tls_only || self.encrypted => Ok(export),
            // A server without TLS must not require it.
            Some(_) if self.tls != Tls::Off => Err((rep::ERR_TLS_REQD, "the export requires TLS")),
            _ => Err((rep::ERR_UNKNOWN, "there is no such export")),
        }
    }

    /// Counts the reply bytes since `start`; removes them if the limit is exceeded.
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
        let replies = match (self.negotiated.extended, self.negotiated.structured) {
            (true, _) => Replies::Extended,
            (false, true) => Replies::Structured,
            (false, false) => Replies::Simple,
        };
        let base_allocation = self.negotiated.base_allocation.as_deref() == Some(name);
        Box::new(Session { export, replies, base_allocation, limits: self.limits })
    }
}

fn no_data(data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() { Ok(()) } else { Err((rep::ERR_INVALID, "the option has no data")) }
}
