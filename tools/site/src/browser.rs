//! The check of the site in a browser: a server on the loopback interface, and Chromium with a page
//! that opens typical pages of the site in frames of two widths and both themes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

const CHECK: &str = include_str!("../assets/browser-check.js");
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Opens typical pages of the site in a browser and returns what the check prints. `axe` is the
/// script of axe-core, whose rules on accessibility are checked, too.
pub fn check(site: &Path, axe: Option<&Path>) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| PROGRAMS.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    let Some(browser) = found else {
        if std::env::var_os("HOISTWAY_REQUIRE_BROWSER").is_some_and(|value| value == "1") {
            bail!("HOISTWAY_REQUIRE_BROWSER is set, but none of {PROGRAMS:?} is in PATH");
        }
        return Ok(format!("SKIPPED: none of {PROGRAMS:?} is in PATH, the site was not opened in a browser"));
    };
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback interface")?;
    let port = listener.local_addr()?.port();
    let served = (site.to_owned(), axe.map(Path::to_owned));
    thread::spawn(move || serve(&listener, &served.0, served.1.as_deref()));
    let profile = std::env::temp_dir().join(format!("hoistway-site-browser-{}", std::process::id()));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1300,1000",
            "--virtual-time-budget=120000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--dump-dom", &format!("http://127.0.0.1:{port}/browser-check.html")])
        .output()
        .context("the browser does not start")?;
    fs::remove_dir_all(&profile).ok();
    let page = String::from_utf8_lossy(&output.stdout);
    let verdict = page.split_once("<pre id=\"browser-check\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    match verdict {
        Some((verdict, _)) if verdict.starts_with("PASSED") => Ok(verdict.to_owned()),
        Some((verdict, _)) => bail!("the site in a browser: {verdict}"),
        None => bail!("the check in the browser did not finish: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Answers requests until the process ends.
fn serve(listener: &TcpListener, site: &Path, axe: Option<&Path>) {
    for stream in listener.incoming().flatten() {
        let (site, axe) = (site.to_owned(), axe.map(Path::to_owned));
        thread::spawn(move || answer(stream, &site, axe.as_deref()));
    }
}

/// Answers the one request of a connection.
fn answer(mut stream: TcpStream, site: &Path, axe: Option<&Path>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    while lines.next()?.ok().is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1)?.split(['?', '#']).next()?.trim_start_matches('/').to_owned();
    let body = match path.as_str() {
        "browser-check.html" => Some(format!("<!doctype html><title>check</title><script>const withAxe = {};</script><script src=\"browser-check.js\"></script>", axe.is_some()).into_bytes()),
        "browser-check.js" => Some(CHECK.as_bytes().to_vec()),
        "axe.min.js" => axe.and_then(|file| fs::read(file).ok()),
        path if path.split('/').any(|part| part == "..") => None,
        path => fs::read(site.join(PathBuf::from(path))).ok(),
    };
    let kind = match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "wasm" => "application/wasm",
        "json" => "application/json",
        _ => "application/octet-stream",
    };
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}
