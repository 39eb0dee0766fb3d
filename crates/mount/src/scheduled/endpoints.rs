//! The control socket and the metrics endpoint of a gate, with one thread per connection.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hoistway_control::metrics::{Metrics, http};
use hoistway_control::{Session, Watch};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::GateAdmin;

/// Maximum number of connections; further ones are closed at once.
const CONNECTIONS_MAX: usize = 64;
/// Inactivity timeout of a connection.
const QUIET: Duration = Duration::from_secs(600);
/// Pause after a failed accept, for example while no descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// The admin endpoints of a gate.
#[derive(Clone)]
pub struct AdminEndpoints {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    connections: AtomicUsize,
}

struct State {
    operator: GateAdmin,
    watch: Watch,
    metrics: Metrics,
}

impl AdminEndpoints {
    /// Starts sampling the accounts of tenants.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(operator: GateAdmin) -> io::Result<AdminEndpoints> {
        let state = State { operator, watch: Watch::new(), metrics: Metrics::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), connections: AtomicUsize::new(0) });
        let sampled = Arc::downgrade(&shared);
        thread::Builder::new().name("hoistway-watch".into()).spawn(move || {
            while let Some(shared) = sampled.upgrade() {
                let mut state = shared.lock();
                let State { operator, watch, .. } = &mut *state;
                let now_ns = operator.now_ns();
                watch.tick(now_ns, operator);
                let wait_ns = watch.due_ns().saturating_sub(now_ns).max(1_000_000);
                drop(state);
                drop(shared);
                thread::sleep(Duration::from_nanos(wait_ns));
            }
        })?;
        Ok(AdminEndpoints { shared })
    }

    /// Serves connections to a control socket.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn control(&self, socket: OwnedFd) -> io::Result<()> {
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(false)?;
        self.accept("hoistway-ctl", move || with_patience(listener.accept()?.0), Shared::steer)
    }

    /// Serves metrics to connections of a socket.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn metrics(&self, socket: OwnedFd) -> io::Result<()> {
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(false)?;
        self.accept("hoistway-http", move || with_patience(listener.accept()?.0), Shared::scraped)
    }

    fn accept<S: Send + 'static>(
        &self,
        name: &str,
        accept: impl Fn() -> io::Result<S> + Send + 'static,
        serve: fn(&Shared, &mut S) -> io::Result<()>,
    ) -> io::Result<()> {
        let shared = self.shared.clone();
        let of_connection = format!("{name}-conn");
        thread::Builder::new().name(name.into()).spawn(move || {
            loop {
                let mut stream = match accept() {
                    Ok(stream) => stream,
                    Err(error) => {
                        tracing::debug!("accept failed: {error}");
                        thread::sleep(PAUSE);
                        continue;
                    }
                };
                if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let of_thread = shared.clone();
                let spawned = thread::Builder::new().name(of_connection.clone()).spawn(move || {
                    if let Err(error) = serve(&of_thread, &mut stream) {
                        tracing::debug!("a connection ended: {error}");
                    }
                    of_thread.connections.fetch_sub(1, Ordering::Relaxed);
                });
                if spawned.is_err() {
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(())
    }
}

/// Makes a connection blocking, with an inactivity timeout.
fn with_patience<S: From<OwnedFd> + Into<OwnedFd>>(stream: S) -> io::Result<S> {
    let socket = stream.into();
    rustix::io::ioctl_fionbio(&socket, false)?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, direction, Some(QUIET))?;
    }
    Ok(socket.into())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection to the control socket until its end.
    fn steer<S: Read + Write>(&self, stream: &mut S) -> io::Result<()> {
        let (mut session, mut bytes, mut out) = (Session::new(), [0; 4096], Vec::new());
        loop {
            let count = stream.read(&mut bytes)?;
            {
                let State { operator, watch, .. } = &mut *self.lock();
                match bytes.get(..count).filter(|bytes| !bytes.is_empty()) {
                    Some(bytes) => session.receive(bytes, watch, operator, &mut out),
                    None => session.end(watch, operator, &mut out),
                }
            }
            loop {
                stream.write_all(&out)?;
                out.clear();
                if !session.has_more() {
                    break;
                }
                let State { operator, watch, .. } = &mut *self.lock();
                session.resume(watch, operator, &mut out);
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Serves a metrics connection until its end.
    fn scraped<S: Read + Write>(&self, stream: &mut S) -> io::Result<()> {
        let (mut session, mut bytes, mut out) = (http::Session::new(), [0; 4096], Vec::new());
        loop {
            let count = stream.read(&mut bytes)?;
            let Some(bytes) = bytes.get(..count).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
            {
                let State { operator, watch, metrics } = &mut *self.lock();
                session.receive(bytes, metrics, watch, operator, &mut out);
            }
            loop {
                stream.write_all(&out)?;
                out.clear();
                if session.is_closing() {
                    return Ok(());
                }
                if !session.has_more() {
                    break;
                }
                let State { operator, watch, metrics } = &mut *self.lock();
                session.resume(metrics, watch, operator, &mut out);
            }
        }
    }
}
