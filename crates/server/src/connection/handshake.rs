//! The handshake of a connection, until the client has chosen an export.

use std::sync::Arc;

use hoistway_nbd::server::{Progress, Session};
use hoistway_reactor::Engine;
use hoistway_tls::Channel;

use super::transmission::Transmission;
use super::{Connection, Phase};
use crate::close_reason::CloseReason;
use crate::exports::AllowedExports;
use crate::membership::Membership;
use crate::state::ServerState;

/// The unsent bytes of replies to options above which nothing more is read from a client.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// The phase in which the client has not chosen an export.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) nbd: hoistway_nbd::server::Handshake,
    /// The input waits until the replies to earlier options are sent.
    pub(super) is_blocked: bool,
    /// The server shuts down: options are answered with an error.
    pub(super) is_shut_down: bool,
}

impl Handshake {
    pub(super) fn new(nbd: hoistway_nbd::server::Handshake) -> Handshake {
        Handshake { nbd, is_blocked: false, is_shut_down: false }
    }
}

impl Connection {
    /// Consumes bytes of the handshake and returns their number.
    pub(super) fn negotiate<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        let Phase::Handshake(handshake) = &mut self.phase else { return 0 };
        let pending_before = self.outgoing.pending();
        if handshake.is_blocked || pending_before > OUTPUT_BYTES_MAX {
            handshake.is_blocked = true;
            return 0;
        }
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let allowed = AllowedExports::new(&state.config, &state.exports, &self.peer, names);
        let (used, progress) = handshake.nbd.receive(bytes, &allowed, self.outgoing.head());
        if self.outgoing.pending() > pending_before {
            state.senders.schedule(self.id);
        }
        match progress {
            Progress::More => {}
            Progress::StartTls => self.start_tls(bytes.len() - used, state),
            Progress::Ready(session) => self.join(*session, state),
            Progress::Aborted => self.close_after_sending(CloseReason::Disconnected, state),
            Progress::Violated(violation) => self.close_after_sending(CloseReason::Violation(violation), state),
        }
        used
    }

    /// Starts TLS. `plain` bytes followed the STARTTLS option, which is only valid for zero bytes.
    fn start_tls<E: Engine>(&mut self, plain: usize, state: &mut ServerState<E>) {
        if plain > 0 {
            return self.close(CloseReason::Injected(plain));
        }
        let Some(config) = &state.tls else { return self.close(CloseReason::NoCertificate) };
        match Channel::new(Arc::clone(config)) {
            Ok(channel) => self.channel = Some(Box::new(channel)),
            Err(error) => return self.close(CloseReason::Tls(error)),
        }
        self.outgoing.encrypt_from_here();
        if let Phase::Handshake(handshake) = &mut self.phase {
            handshake.nbd.encrypted();
        }
    }

    /// Ends the handshake: the client becomes a member of its tenant on the export's device.
    fn join<E: Engine>(&mut self, session: Session, state: &mut ServerState<E>) {
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let allowed = AllowedExports::new(&state.config, &state.exports, &self.peer, names);
        let export = session.export.name.as_str();
        let Some((served, tenant)) = allowed.admit(export) else { return self.close(CloseReason::ExportWithdrawn) };
        let (place, tenant) = ((served.device, served.offset), tenant.map(Into::into));
        match Membership::join(export, place, tenant, &self.peer, state) {
            Ok(membership) => {
                tracing::debug!(client = self.number, export, tenant = membership.tenant(), "joined");
                self.phase = Phase::Transmission(Box::new(Transmission::new(session, membership)));
                state.deadlines.clear(self.id);
            }
            Err(reason) => self.close(reason),
        }
    }
}
