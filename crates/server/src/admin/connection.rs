//! Connections to the control tree and to the metrics.

use hoistway_control as control;
use hoistway_control::metrics::http;

use crate::purpose::Purpose;

/// The maximum number of control connections, and that of metrics connections. Another control
/// connection is closed at once; for another metrics connection the oldest one is closed. The
/// limits are separate so that metrics clients cannot lock administrators out.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 64;

/// A connection to the control tree or to the metrics.
pub(crate) struct AdminConnection {
    pub(super) session: AdminSession,
    /// True while a receive is in progress.
    pub(super) receiving: bool,
    /// True while a send is in progress.
    pub(super) sending: bool,
    /// True after the end of the client's stream.
    pub(super) ended: bool,
}

/// The protocol of an [`AdminConnection`].
pub(super) enum AdminSession {
    Control(control::Session),
    Metrics(http::Session),
}

/// An event of an [`AdminConnection`].
pub(crate) enum AdminEvent<'a> {
    /// Bytes were received; none at the end of the stream.
    Received(&'a [u8]),
    /// A message was sent.
    Sent,
    /// The connection was accepted.
    Accepted,
}

impl AdminConnection {
    /// Creates a connection to the control tree.
    pub(crate) fn control() -> AdminConnection {
        AdminConnection::new(AdminSession::Control(control::Session::new()))
    }

    /// Creates a connection to the metrics.
    pub(crate) fn metrics() -> AdminConnection {
        AdminConnection::new(AdminSession::Metrics(http::Session::new()))
    }

    fn new(session: AdminSession) -> AdminConnection {
        AdminConnection { session, receiving: false, sending: false, ended: false }
    }

    /// Returns the service that the connection uses.
    pub(crate) fn purpose(&self) -> Purpose {
        match &self.session {
            AdminSession::Control(_) => Purpose::Control,
            AdminSession::Metrics(_) => Purpose::Metrics,
        }
    }

    /// Returns true if a complete request waits for its answer.
    pub(super) fn has_more(&self) -> bool {
        match &self.session {
            AdminSession::Control(session) => session.has_more(),
            AdminSession::Metrics(session) => session.has_more(),
        }
    }

    /// Returns true if more bytes are to be received.
    pub(super) fn wants_input(&self) -> bool {
        !self.ended
            && match &self.session {
                AdminSession::Control(session) => session.wants_input(),
                AdminSession::Metrics(session) => session.wants_input(),
            }
    }

    /// Returns true if the connection is closed after its last answer.
    pub(super) fn is_closing(&self) -> bool {
        self.ended || matches!(&self.session, AdminSession::Metrics(session) if session.is_closing())
    }
}
