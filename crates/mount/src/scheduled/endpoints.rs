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

/// Maximum number of connections; the listener closes further ones at once.
const CONNECTIONS_MAX: usize = 64;
/// Inactivity timeout of a connection.
const INACTIVITY_TIMEOUT: Duration = Duration::from_secs(600);
/// Pause after a failed accept, for example while no descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

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
    admin: GateAdmin,
    watch: Watch,
    metrics: Metrics,
}

impl AdminEndpoints {
    /// Starts sampling the accounts of tenants.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(admin: GateAdmin) -> io::Result<AdminEndpoints> {
        let state = State { admin, watch: Watch::new(), metrics: Metrics::of_process() };
        let shared = Arc::new(Shared { state: Mutex::new(state), connections: AtomicUsize::new(0) });
        let sampled = Arc::downgrade(&shared);
        thread::Builder::new().name("hoistway-watch".into()).spawn(move || {
            while let Some(shared) = sampled.upgrade() {
                let mut state = shared.lock();
                let State { admin, watch, .. } = &mut *state;
                let now_ns = admin.now_ns();
                watch.tick(now_ns, admin);
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
        self.accept("hoistway-ctl", move || with_timeout(listener.accept()?.0), Shared::serve_control)
    }

    /// Serves metrics to connections of a socket.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn metrics(&self, socket: OwnedFd) -> io::Result<()> {
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(false)?;
        self.accept("hoistway-http", move || with_timeout(listener.accept()?.0), Shared::serve_metrics)
    }

    fn accept<S: Send + 'static>(
        &self,
        name: &str,
        accept: impl Fn() -> io::Result<S> + Send + 'static,
        serve: fn(&Shared, &mut S) -> io::Result<()>,
    ) -> io::Result<()> {
        let shared = self.shared.clone();
        let thread_name = format!("{name}-conn");
        thread::Builder::new().name(name.into()).spawn(move || {
            loop {
                let mut stream = match accept() {
                    Ok(stream) => stream,
                    Err(error) => {
                        tracing::debug!("accept failed: {error}");
                        thread::sleep(ACCEPT_RETRY);
                        continue;
                    }
                };
                if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let served = shared.clone();
                let spawned = thread::Builder::new().name(thread_name.clone()).spawn(move || {
                    if let Err(error) = serve(&served, &mut stream) {
                        tracing::debug!("a connection ended: {error}");
                    }
                    served.connections.fetch_sub(1, Ordering::Relaxed);
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
fn with_timeout<S: From<OwnedFd> + Into<OwnedFd>>(stream: S) -> io::Result<S> {
    let socket = stream.into();
    rustix::io::ioctl_fionbio(&socket, false)?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, direction, Some(INACTIVITY_TIMEOUT))?;
    }
    Ok(socket.into())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection to the control socket until its end.
    fn serve_control<S: Read + Write>(&self, stream: &mut S) -> io::Result<()> {
        let (mut session, mut bytes, mut out) = (Session::new(), [0; 4096], Vec::new());
        loop {
            let count = stream.read(&mut bytes)?;
            {
                let State { admin, watch, .. } = &mut *self.lock();
                match bytes.get(..count).filter(|bytes| !bytes.is_empty()) {
                    Some(bytes) => session.receive(bytes, watch, admin, &mut out),
                    None => session.end(watch, admin, &mut out),
                }
            }
            loop {
                stream.write_all(&out)?;
                out.clear();
                if !session.has_more() {
                    break;
                }
                let State { admin, watch, .. } = &mut *self.lock();
                session.resume(watch, admin, &mut out);
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Serves a metrics connection until its end.
    fn serve_metrics<S: Read + Write>(&self, stream: &mut S) -> io::Result<()> {
        let (mut session, mut bytes, mut out) = (http::Session::new(), [0; 4096], Vec::new());
        loop {
            let count = stream.read(&mut bytes)?;
            let Some(bytes) = bytes.get(..count).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
            {
                let State { admin, watch, metrics } = &mut *self.lock();
                session.receive(bytes, metrics, watch, admin, &mut out);
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
                let State { admin, watch, metrics } = &mut *self.lock();
                session.resume(metrics, watch, admin, &mut out);
            }
        }
    }
}
