//! A test client over a real socket: sends and receives the messages of the crate `nbd`, with TLS
//! if requested.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hoistway_nbd::client::{
    Collector, Completion, Findings, Goal, Handshake, HandshakeOptions, Progress, ReplyContent, RequestSpec, TlsMode,
};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{BASE_ALLOCATION, Command, CommandFlags, Errno};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// A byte stream to a server.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A client in the transmission phase.
pub struct Client {
    pub stream: Box<dyn Stream>,
    pub nbd: Collector,
    answered: Vec<Completion>,
}

/// The default options of a handshake for an export.
pub fn wants(export: &str) -> HandshakeOptions {
    HandshakeOptions {
        export: export.into(),
        tls: TlsMode::Never,
        replies: Replies::Structured,
        contexts: vec![BASE_ALLOCATION.into()],
        goal: Goal::Enter,
    }
}

/// Result of a handshake.
pub enum Led {
    To(Box<Client>),
    Over(Findings),
}

/// Connects to the socket of a server.
#[track_caller]
pub fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    stream
}

/// Receives bytes. A receive with a timeout is interrupted if the process is stopped and continued.
fn receive(stream: &mut Box<dyn Stream>, bytes: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Performs a handshake.
pub fn shake_hands(socket: &Path, wants: HandshakeOptions, tls: Option<Arc<ClientConfig>>) -> Result<Led, String> {
    let mut stream: Box<dyn Stream> = Box::new(connect(socket));
    let mut handshake = Handshake::new(wants);
    let mut out = Vec::new();
    let mut bytes = vec![0; 65536];
    loop {
        let len = receive(&mut stream, &mut bytes).map_err(|error| error.to_string())?;
        if len == 0 {
            return Err("the server has closed the connection".into());
        }
        let (used, progress) = handshake.receive(&bytes[..len], &mut out).map_err(|error| error.to_string())?;
        stream.write_all(&out).map_err(|error| error.to_string())?;
        out.clear();
        match progress {
            Progress::More => {}
            Progress::Over(findings) => return Ok(Led::Over(findings)),
            Progress::Ready(session) => {
                let mut nbd = Collector::new(*session);
                let mut answered = Vec::new();
                nbd.receive(&bytes[used..len], &mut answered).map_err(|error| error.to_string())?;
                return Ok(Led::To(Box::new(Client { stream, nbd, answered })));
            }
            Progress::StartTls => {
                assert_eq!(used, len, "the server sends nothing before TLS");
                let config = tls.clone().expect("the test has certificates");
                let name = ServerName::try_from("localhost").expect("a name");
                let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
                stream = Box::new(StreamOwned::new(connection, stream));
                handshake.encrypted(&mut out);
                stream.write_all(&out).map_err(|error| error.to_string())?;
                out.clear();
            }
        }
    }
}

impl Client {
    /// Connects to an export.
    #[track_caller]
    pub fn of(socket: &Path, export: &str) -> Client {
        Client::with(socket, wants(export))
    }

    #[track_caller]
    pub fn with(socket: &Path, wants: HandshakeOptions) -> Client {
        match shake_hands(socket, wants, None) {
            Ok(Led::To(client)) => *client,
            Ok(Led::Over(_)) => panic!("the handshake ended without an export"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a request without waiting for the reply.
    #[track_caller]
    pub fn send(&mut self, command: Command, flags: CommandFlags, offset: u64, length: u64, data: &[u8]) -> u64 {
        let mut out = Vec::new();
        let cookie = self.encode(RequestSpec { command, flags, offset, length }, data, &mut out);
        self.stream.write_all(&out).expect("the server takes it");
        cookie
    }

    /// Appends a request to bytes that the test sends itself. Returns its cookie.
    #[track_caller]
    pub fn encode(&mut self, request: RequestSpec, data: &[u8], bytes: &mut Vec<u8>) -> u64 {
        self.nbd.request(&request, data, bytes).expect("it may be asked")
    }

    /// Waits for a number of replies and returns them in the order of arrival.
    #[track_caller]
    pub fn answers(&mut self, count: usize) -> Vec<Completion> {
        let mut bytes = vec![0; 1 << 20];
        while self.answered.len() < count {
            let len = receive(&mut self.stream, &mut bytes).expect("the server answers in time");
            assert!(len > 0, "the server has closed the connection");
            self.nbd.receive(&bytes[..len], &mut self.answered).expect("the server speaks NBD");
        }
        self.answered.drain(..count).collect()
    }

    #[track_caller]
    fn ask(
        &mut self,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
        data: &[u8],
    ) -> Result<ReplyContent, (Errno, String)> {
        let cookie = self.send(command, flags, offset, length, data);
        let answer = self.answers(1).remove(0);
        assert_eq!(answer.cookie, cookie);
        answer.result
    }

    #[track_caller]
    pub fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, (Errno, String)> {
        match self.ask(Command::Read, CommandFlags::default(), offset, length, &[])? {
            ReplyContent::Data(data) => Ok(data),
            other => panic!("{other:?} is no data"),
        }
    }

    #[track_caller]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), (Errno, String)> {
        self.ask(Command::Write, CommandFlags::default(), offset, data.len() as u64, data).map(|_| ())
    }

    #[track_caller]
    pub fn flush(&mut self) -> Result<(), (Errno, String)> {
        self.ask(Command::Flush, CommandFlags::default(), 0, 0, &[]).map(|_| ())
    }

    #[track_caller]
    pub fn command(
        &mut self,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
    ) -> Result<ReplyContent, (Errno, String)> {
        self.ask(command, flags, offset, length, &[])
    }

    /// Returns true if the server closes the connection without further data.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match receive(&mut self.stream, &mut byte) {
            Ok(bytes) => bytes == 0,
            // The timeout of the socket.
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}
