//! Connections that are not NBD's: the control tree and metrics, both texts.

use crate::{Purpose, Server};
use hoistway_control as control;
use hoistway_control::metrics::http;
use hoistway_reactor::{ConnId, Engine, Message, Part};

/// Control connections at once, and metrics connections at once: more are closed as they come.
/// Whoever fetches metrics cannot keep those who steer out.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 64;

/// Somebody who steers or watches.
pub(crate) struct AdminConnection {
    session: Session,
    /// A receive is under way.
    receiving: bool,
    /// A send is under way.
    sending: bool,
    /// The other side sends no more.
    ended: bool,
    /// When it is closed if it has not said anything by then.
    pub(crate) deadline_ns: Option<u64>,
}

enum Session {
    Control(control::Session),
    Metrics(http::Session),
}

impl AdminConnection {
    /// Somebody who steers.
    pub(crate) fn control() -> AdminConnection {
        AdminConnection::new(Session::Control(control::Session::new()))
    }

    /// Somebody who fetches metrics.
    pub(crate) fn metrics() -> AdminConnection {
        AdminConnection::new(Session::Metrics(http::Session::new()))
    }

    fn new(session: Session) -> AdminConnection {
        AdminConnection { session, receiving: false, sending: false, ended: false, deadline_ns: None }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        match &self.session {
            Session::Control(_) => Purpose::Control,
            Session::Metrics(_) => Purpose::Metrics,
        }
    }

    fn has_more(&self) -> bool {
        match &self.session {
            Session::Control(session) => session.has_more(),
            Session::Metrics(session) => session.has_more(),
        }
    }

    fn wants_input(&self) -> bool {
        !self.ended
            && match &self.session {
                Session::Control(session) => session.wants_input(),
                Session::Metrics(session) => session.wants_input(),
            }
    }

    fn is_closing(&self) -> bool {
        self.ended || matches!(&self.session, Session::Metrics(session) if session.is_closing())
    }
}

/// What has happened to a text connection.
pub(crate) enum InputEvent<'a> {
    /// Bytes came; none: the other side sends no more.
    Bytes(&'a [u8]),
    /// What was sent has arrived.
    Sent,
    /// Nothing; it is new.
    Nothing,
}

impl<E: Engine> Server<E> {
    /// Does what somebody who steers or watches asks for, and answers.
    pub(crate) fn text(&mut self, id: ConnId, heard: InputEvent<'_>) {
        // Whoever steers may look at everybody, himself included: so he steps aside meanwhile.
        let Some(mut text) = self.texts.remove(id) else { return };
        let (watch, mut metrics) = (std::mem::take(&mut self.watch), std::mem::take(&mut self.metrics));
        let mut head = self.state.spare.pop().unwrap_or_default().head;
        let is_new = matches!(heard, InputEvent::Nothing);
        let bytes = match heard {
            InputEvent::Bytes(bytes) => {
                text.receiving = false;
                text.ended |= bytes.is_empty();
                bytes
            }
            InputEvent::Sent => {
                text.sending = false;
                &[]
            }
            InputEvent::Nothing => &[],
        };
        if !text.sending {
            match &mut text.session {
                Session::Control(session) if text.ended => session.end(&watch, self, &mut head),
                Session::Control(session) if bytes.is_empty() => session.resume(&watch, self, &mut head),
                Session::Control(session) => session.receive(bytes, &watch, self, &mut head),
                Session::Metrics(session) if bytes.is_empty() => session.resume(&mut metrics, &watch, self, &mut head),
                Session::Metrics(session) => session.receive(bytes, &mut metrics, &watch, self, &mut head),
            }
        }
        (self.watch, self.metrics) = (watch, metrics);
        let len = head.len();
        if len > 0 {
            text.sending = true;
            self.state.engine.send(id, Message { head, parts: vec![Part::Head { len }] });
        }
        let is_over = !text.sending && (text.is_closing() && !text.has_more());
        if is_over {
            self.state.clear_deadline(id, &mut text.deadline_ns);
            return self.state.engine.close(id);
        }
        if !text.sending && !text.receiving && text.wants_input() {
            text.receiving = true;
            self.state.engine.receive(id);
        }
        // Bytes do not earn time, only a whole request that is answered does: else a byte now and
        // then would keep a place for ever.
        if matches!(text.session, Session::Metrics(_)) && (is_new || len > 0) {
            self.state.set_deadline(id, &mut text.deadline_ns);
        }
        self.texts.insert(id, *text);
    }

    /// Closes a text connection.
    pub(crate) fn close_text(&mut self, id: ConnId) {
        if let Some(mut text) = self.texts.remove(id) {
            self.state.clear_deadline(id, &mut text.deadline_ns);
            self.state.engine.close(id);
        }
    }
}
