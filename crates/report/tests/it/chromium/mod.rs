//! Pages in a real browser. Skipped with a message without Chromium; with
//! `HOISTWAY_REQUIRE_BROWSER=1` its absence is a failure.

use std::path::PathBuf;
use std::process::Command;

/// Opens a page with a check appended, which writes its findings into the element `browser-check`,
/// and returns the document; `None` without a browser.
pub fn check(html: &str, check: &str, flags: &[&str]) -> Option<String> {
    let browser = browser()?;
    let at = html.rfind("</body>").expect("a body");
    let html = format!("{}<script>\n{check}\n</script>{}", &html[..at], &html[at..]);
    let folder = tempfile::tempdir().expect("a directory for the page");
    let file = folder.path().join("page.html");
    std::fs::write(&file, html).expect("the page is written");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=200000"])
        .args(flags)
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    // Messages of the browser's software renderer about its speed are not errors of the page.
    let console: Vec<&str> =
        said.lines().filter(|l| l.contains("CONSOLE") && !l.contains("GL Driver Message")).collect();
    let verdict = dom.split_once("<pre id=\"browser-check\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let verdict = verdict.map_or("nothing: the check did not finish", |(verdict, _)| verdict);
    assert!(verdict.starts_with("PASSED"), "the check of the page reports {verdict}\n{}", console.join("\n"));
    assert!(console.is_empty(), "the console is not empty:\n{}", console.join("\n"));
    println!("{verdict}");
    Some(dom)
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|n| folder.join(n))).find(|p| p.is_file());
    if found.is_none() {
        let required = std::env::var_os("HOISTWAY_REQUIRE_BROWSER").is_some_and(|v| v == "1");
        assert!(!required, "HOISTWAY_REQUIRE_BROWSER is set, but none of {names:?} is in PATH");
        println!("SKIPPED: none of {names:?} is in PATH, the page was not opened in a browser");
    }
    found
}
