//! Serves the page of a trace and its numbered files to a browser on this machine.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Maximum length of a request head in bytes.
const HEAD_BYTES_MAX: u64 = 16 << 10;
/// Timeout of reading a request and of writing a reply.
const IO_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the check for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of concurrent connections; a browser opens six.
const CONNECTIONS_MAX: usize = 32;

/// Serves requests until `stop` is set: the page, and the files `NUMBER.js` of the folder. Requests
/// with another host name than `address` or `localhost` are refused.
///
/// # Errors
/// The socket cannot be made non-blocking.
pub fn serve_page(listener: &TcpListener, page: String, folder: Option<TempDir>, stop: &AtomicBool) -> io::Result<()> {
    let address = listener.local_addr()?;
    listen(listener, &Arc::new(page), folder.map(Arc::new).as_ref(), address, stop)
}

fn listen(
    listener: &TcpListener,
    page: &Arc<String>,
    folder: Option<&Arc<TempDir>>,
    address: SocketAddr,
    stop: &AtomicBool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let busy = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            // The client closed the connection before it was accepted.
            Err(_) => continue,
        };
        if busy.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        busy.fetch_add(1, Ordering::Relaxed);
        let (page, folder, busy) = (Arc::clone(page), folder.cloned(), Arc::clone(&busy));
        thread::spawn(move || {
            // A browser may close the connection at any time.
            let _ = answer(&stream, &page, folder.as_ref().map(|folder| folder.path()), address);
            busy.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

fn answer(stream: &TcpStream, page: &str, folder: Option<&Path>, address: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(HEAD_BYTES_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut host = None;
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            host = Some(value.trim().to_owned());
        }
    }
    let reply = reply(&first, host.as_deref(), page, folder, address);
    let mut stream = stream;
    stream.write_all(&reply)
}

/// Returns the reply to the first line and the Host header of a request.
fn reply(first: &str, host: Option<&str>, page: &str, folder: Option<&Path>, address: SocketAddr) -> Vec<u8> {
    // DNS rebinding: a foreign page can direct a browser here under its own name. Only names of
    // this machine are accepted.
    let port = address.port();
    let ours = [format!("{address}"), format!("localhost:{port}")];
    if !host.is_some_and(|host| ours.iter().any(|our| our == host)) {
        return whole("421 Misdirected Request", "text/plain", b"only the address of this machine is served\n", true);
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "GET" && method != "HEAD" {
        return whole("405 Method Not Allowed", "text/plain", b"only GET and HEAD are supported\n", true);
    }
    let with_body = method == "GET";
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if path == "/" {
        return whole("200 OK", "text/html; charset=utf-8", page.as_bytes(), with_body);
    }
    let number =
        path.strip_prefix("/detail/").and_then(|rest| rest.strip_suffix(".js")).and_then(|n| n.parse::<u32>().ok());
    let file = number.and_then(|number| fs::read(folder?.join(format!("{number}.js"))).ok());
    match file {
        Some(file) => whole("200 OK", "text/javascript", &file, with_body),
        None => whole("404 Not Found", "text/plain", b"only / and /detail/NUMBER.js exist\n", with_body),
    }
}

fn whole(status: &str, kind: &str, body: &[u8], with_body: bool) -> Vec<u8> {
    let length = body.len();
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    if with_body {
        reply.extend_from_slice(body);
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(first: &str, host: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("3.js"), "three").unwrap();
        let address: SocketAddr = "127.0.0.1:8000".parse().unwrap();
        String::from_utf8(reply(first, Some(host), "the page", Some(folder.path()), address)).unwrap()
    }

    #[test]
    fn only_the_page_and_the_numbered_files_are_served() {
        let host = "127.0.0.1:8000";
        assert!(get("GET / HTTP/1.1", host).ends_with("\r\n\r\nthe page"));
        assert!(get("GET /?theme=dark HTTP/1.1", "localhost:8000").ends_with("the page"));
        assert!(get("GET /detail/3.js HTTP/1.1", host).ends_with("\r\n\r\nthree"));
        assert!(get("HEAD / HTTP/1.1", host).contains("Content-Length: 8\r\n"));
        for nothing in ["/detail/4.js", "/detail/../3.js", "/3.js", "/etc/passwd", ""] {
            assert!(get(&format!("GET {nothing} HTTP/1.1"), host).starts_with("HTTP/1.1 404"), "{nothing}");
        }
        assert!(get("POST / HTTP/1.1", host).starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn other_host_names_are_refused() {
        assert!(get("GET / HTTP/1.1", "elsewhere.example:8000").starts_with("HTTP/1.1 421"));
    }

    #[test]
    fn a_client_receives_the_page() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let server = thread::spawn(move || listen(&listener, &Arc::new("hello".to_owned()), None, address, &stopped));
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nhello"), "{got}");
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
    }
}
