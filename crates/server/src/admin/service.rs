//! Service of the control and metrics connections.

use hoistway_reactor::{ConnId, Engine, Message, Part};

use super::connection::{AdminEvent, AdminSession};
use crate::server::Server;

impl<E: Engine> Server<E> {
    /// Handles an event of a control or metrics connection: answers requests, receives more, or
    /// closes the connection.
    pub(crate) fn handle_admin_event(&mut self, id: ConnId, event: AdminEvent<'_>) {
        // The connection leaves its table meanwhile, because a request reads the whole server.
        let Some(mut admin) = self.admin_connections.remove(id) else { return };
        let (watch, mut metrics) = (std::mem::take(&mut self.watch), std::mem::take(&mut self.metrics));
        let mut head = self.state.spare.pop().unwrap_or_default().head;
        let is_new = matches!(event, AdminEvent::Accepted);
        let bytes = match event {
            AdminEvent::Received(bytes) => {
                admin.receiving = false;
                admin.ended |= bytes.is_empty();
                bytes
            }
            AdminEvent::Sent => {
                admin.sending = false;
                &[]
            }
            AdminEvent::Accepted => &[],
        };
        if !admin.sending {
            match &mut admin.session {
                AdminSession::Control(session) if admin.ended => session.end(&watch, self, &mut head),
                AdminSession::Control(session) if bytes.is_empty() => session.resume(&watch, self, &mut head),
                AdminSession::Control(session) => session.receive(bytes, &watch, self, &mut head),
                AdminSession::Metrics(session) if bytes.is_empty() => {
                    session.resume(&mut metrics, &watch, self, &mut head);
                }
                AdminSession::Metrics(session) => session.receive(bytes, &mut metrics, &watch, self, &mut head),
            }
        }
        (self.watch, self.metrics) = (watch, metrics);
        let len = head.len();
        if len > 0 {
            admin.sending = true;
            self.state.engine.send(id, Message { head, parts: vec![Part::Head { len }] });
        }
        let is_over = !admin.sending && (admin.is_closing() && !admin.has_more());
        if is_over {
            self.state.deadlines.clear(id);
            return self.state.engine.close(id);
        }
        if !admin.sending && !admin.receiving && admin.wants_input() {
            admin.receiving = true;
            self.state.engine.receive(id);
        }
        // Only an answered request extends the deadline. If single bytes did, a client that sends a
        // byte now and then could keep its connection for ever.
        if matches!(admin.session, AdminSession::Metrics(_)) && (is_new || len > 0) {
            self.state.set_handshake_deadline(id);
        }
        self.admin_connections.insert(id, *admin);
    }

    /// Closes a control or metrics connection.
    pub(crate) fn close_admin_connection(&mut self, id: ConnId) {
        if self.admin_connections.remove(id).is_some() {
            self.state.deadlines.clear(id);
            self.state.engine.close(id);
        }
    }
}
