//! The control socket and the metrics endpoint of a gate, with one thread per connection.

mod connections;

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hoistway_control::metrics::{Metrics, http};
use hoistway_control::{Session, Watch};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::GateAdmin;
use connections::{Connection, Connections, WhenFull};

/// Inactivity timeout of a control connection.
const INACTIVITY_TIMEOUT: Duration = Duration::from_secs(600);
/// Time in which a metrics connection sends a whole request and takes its answer, from the
/// beginning or the last answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, for example while no descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The admin endpoints of a gate.
#[derive(Clone)]
pub struct AdminEndpoints {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
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
        let shared = Arc::new(Shared { state: Mutex::new(state) });
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
        let accept = move || blocking(listener.accept()?.0);
        self.accept("hoistway-ctl", WhenFull::RefuseNew, accept, Shared::serve_control)
    }

    /// Serves metrics to connections of a socket.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn metrics(&self, socket: OwnedFd) -> io::Result<()> {
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(false)?;
        let accept = move || blocking(listener.accept()?.0);
        self.accept("hoistway-http", WhenFull::CloseOldest, accept, Shared::serve_metrics)
    }

    fn accept<S: Read + Write + AsFd + Send + 'static>(
        &self,
        name: &str,
        when_full: WhenFull,
        accept: impl Fn() -> io::Result<S> + Send + 'static,
        serve: fn(&Shared, &mut S, &Connection) -> io::Result<()>,
    ) -> io::Result<()> {
        let shared = self.shared.clone();
        let connections = Arc::new(Connections::default());
        let thread_name = format!("{name}-conn");
        thread::Builder::new().name(name.into()).spawn(move || {
            loop {
                let accepted = accept().and_then(|stream| {
                    let connection = Connections::open(&connections, stream.as_fd(), when_full)?;
                    Ok((stream, connection))
                });
                let (mut stream, connection) = match accepted {
                    Ok((stream, Some(connection))) => (stream, connection),
                    Ok((_, None)) => continue,
                    Err(error) => {
                        tracing::debug!("accept failed: {error}");
                        thread::sleep(ACCEPT_RETRY);
                        continue;
                    }
                };
                let served = shared.clone();
                // Without a thread, the connection is closed.
                let _ = thread::Builder::new().name(thread_name.clone()).spawn(move || {
                    if let Err(error) = serve(&served, &mut stream, &connection) {
                        tracing::debug!("a connection ended: {error}");
                    }
                });
            }
        })?;
        Ok(())
    }
}

/// Makes a connection blocking.
fn blocking<S: From<OwnedFd> + Into<OwnedFd>>(stream: S) -> io::Result<S> {
    let socket = stream.into();
    rustix::io::ioctl_fionbio(&socket, false)?;
    Ok(socket.into())
}

/// Sets the time that a receive and a send may take.
fn set_timeout(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, direction, Some(timeout))?;
    }
    Ok(())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection to the control socket until its end.
    fn serve_control<S: Read + Write + AsFd>(&self, stream: &mut S, _: &Connection) -> io::Result<()> {
        set_timeout(&*stream, INACTIVITY_TIMEOUT)?;
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

    /// Serves a metrics connection until its end. A client that sends a request or takes an answer
    /// byte by byte has no more time than others.
    fn serve_metrics<S: Read + Write + AsFd>(&self, stream: &mut S, connection: &Connection) -> io::Result<()> {
        let (mut session, mut bytes, mut out) = (http::Session::new(), [0; 4096], Vec::new());
        loop {
            set_timeout(&*stream, connection.remaining()?)?;
            let count = stream.read(&mut bytes)?;
            let Some(bytes) = bytes.get(..count).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
            {
                let State { admin, watch, metrics } = &mut *self.lock();
                session.receive(bytes, metrics, watch, admin, &mut out);
            }
            while !out.is_empty() {
                while !out.is_empty() {
                    set_timeout(&*stream, connection.remaining()?)?;
                    let count = stream.write(&out)?;
                    out.drain(..count);
                }
                connection.answered();
                if session.is_closing() {
                    return Ok(());
                }
                let State { admin, watch, metrics } = &mut *self.lock();
                session.resume(metrics, watch, admin, &mut out);
            }
        }
    }
}
