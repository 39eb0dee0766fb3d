//! Connections that are not NBD's: the control tree and metrics, both texts.

use crate::control;
use crate::engine::{ConnId, Engine, Message, Part};
use crate::metrics::http;
use crate::server::{Purpose, Server};

/// Control connections at once, and metrics connections at once: more are closed as they come. Whoever fetches metrics cannot keep those who steer out.
pub(super) const TEXTS_MAX: usize = 64;

/// Somebody who steers or watches.
pub(super) struct Text {
    session: Session,
    /// A receive is under way.
    receiving: bool,
    /// A send is under way.
    sending: bool,
    /// The other side sends no more.
    ended: bool,
    /// When it is closed if it has not said anything by then.
    pub(super) deadline_ns: Option<u64>,
}

enum Session {
    Control(control::Session),
    Metrics(http::Session),
}

impl Text {
    /// Somebody who steers.
    pub(super) fn control() -> Text {
        Text::new(Session::Control(control::Session::new()))
    }

    /// Somebody who fetches metrics.
    pub(super) fn metrics() -> Text {
        Text::new(Session::Metrics(http::Session::new()))
    }

    fn new(session: Session) -> Text {
        Text { session, receiving: false, sending: false, ended: false, deadline_ns: None }
    }

    pub(super) fn purpose(&self) -> Purpose {
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
pub(super) enum Heard<'a> {
    /// Bytes came; none: the other side sends no more.
    Bytes(&'a [u8]),
    /// What was sent has arrived.
    Sent,
    /// Nothing; it is new.
    Nothing,
}

impl<E: Engine> Server<E> {
    /// Does what somebody who steers or watches asks for, and answers.
    pub(super) fn text(&mut self, id: ConnId, heard: Heard<'_>) {
        // Whoever steers may look at everybody, himself included: so he steps aside meanwhile.
        let Some(mut text) = self.texts.remove(id) else { return };
        let (watch, mut metrics) = (std::mem::take(&mut self.watch), std::mem::take(&mut self.metrics));
        let mut head = self.house.spare.pop().unwrap_or_default().head;
        let is_new = matches!(heard, Heard::Nothing);
        let bytes = match heard {
            Heard::Bytes(bytes) => {
                text.receiving = false;
                text.ended |= bytes.is_empty();
                bytes
            }
            Heard::Sent => {
                text.sending = false;
                &[]
            }
            Heard::Nothing => &[],
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
            self.house.engine.send(id, Message { head, parts: vec![Part::Head { len }] });
        }
        let is_over = !text.sending && (text.is_closing() && !text.has_more());
        if is_over {
            self.house.clear_deadline(id, &mut text.deadline_ns);
            return self.house.engine.close(id);
        }
        if !text.sending && !text.receiving && text.wants_input() {
            text.receiving = true;
            self.house.engine.receive(id);
        }
        // Bytes do not earn time, only a whole request that is answered does: else a byte now and then would keep a place for ever.
        if matches!(text.session, Session::Metrics(_)) && (is_new || len > 0) {
            self.house.set_deadline(id, &mut text.deadline_ns);
        }
        self.texts.insert(id, *text);
    }

    /// Closes a text connection.
    pub(super) fn close_text(&mut self, id: ConnId) {
        if let Some(mut text) = self.texts.remove(id) {
            self.house.clear_deadline(id, &mut text.deadline_ns);
            self.house.engine.close(id);
        }
    }
}
