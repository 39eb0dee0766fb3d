//! `cargo xtask check-monitoring`: the alerts and the dashboard of `packaging` against Prometheus.
//!
//! promtool checks the rules and runs their tests. Then fio loads a server with four tenants on an
//! emulated drive, and Prometheus scrapes it. The text of a scrape must be valid OpenMetrics, each
//! expression of the dashboard must have a value, and no alert may be pending. The dashboard can be
//! drawn from the answers of Prometheus with Grafana's components (`render`).

mod dashboard;
mod render;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use hoistway_workspace::programs::{self, Background};
use hoistway_workspace::{cargo, repository};
use serde_json::Value;

use dashboard::Dashboard;
use hoistway_workspace::server::Server;

/// The programs of this check, with their Debian packages.
const PROGRAMS: [(&str, &str); 3] = [("prometheus", "prometheus"), ("promtool", "prometheus"), ("fio", "fio")];
/// Debian's Python, which finds Debian's packages.
const PYTHON: &str = "/usr/bin/python3";
/// The Debian package of the parser of OpenMetrics.
const PARSER: &str = "python3-prometheus-client";
/// Parses the text of a scrape as strictly as the standard demands.
const PARSE: &str = "import sys, urllib.request
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
text = urllib.request.urlopen(sys.argv[1]).read().decode()
print(sum(len(family.samples) for family in parse(text)))";
/// Reads the dashboard into Grafana's model of dashboards.
const MODEL: &str = include_str!("model.py");
/// The tenants of the server: terms, and the jobs of fio.
const TENANTS: [(&str, &str, &str); 4] = [
    ("web", "weight = 300", "rw=randread\nbs=64k\niodepth=8"),
    ("backup", "weight = 100\nlimit_iops = 25", "rw=randrw\nbs=64k\niodepth=8"),
    ("database", "reserve = { rate = \"1M\", request = \"64k\" }", "rw=randread\nbs=64k\niodepth=2"),
    ("batch", "limit = \"1M\"", "rw=write\nbs=128k\niodepth=4\nfsync=64"),
];
/// Metrics without a sample on most machines: the limits of the process are unlimited there.
const OPTIONAL: [&str; 2] = ["hoistway_memory_limit_bytes", "process_virtual_memory_max_bytes"];
/// The interval of scrapes in seconds.
const SCRAPE_S: u64 = 2;
/// The longest time until Prometheus answers.
const PROMETHEUS_START_MAX: Duration = Duration::from_secs(30);

/// Options of `cargo xtask check-monitoring`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Seconds of the load that Prometheus observes
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(20..))]
    seconds: u64,
    /// Draw the dashboard with Grafana's components: a page and pictures in this directory
    #[arg(long, value_name = "DIRECTORY")]
    render: Option<PathBuf>,
    /// The program to run, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Install missing programs (as root on Debian)
    #[arg(long)]
    install: bool,
}

/// Runs the check. Without Prometheus it prints that it was skipped.
pub fn run(options: &Options) -> Result<()> {
    if !options.install && programs::find("prometheus").is_none() {
        println!("SKIPPED: prometheus is missing: apt-get install prometheus, or pass --install");
        return Ok(());
    }
    programs::require_all(&PROGRAMS, options.install)?;
    let monitoring = repository::root().join("packaging/prometheus");
    let promtool = |arguments: &[&str], file: &str| {
        programs::run(Command::new("promtool").args(arguments).arg(file).current_dir(&monitoring))
    };
    promtool(&["check", "rules"], "hoistway.rules.yml")?;
    promtool(&["check", "config"], "prometheus.yml")?;
    promtool(&["test", "rules"], "hoistway.tests.yml")?;

    check_model()?;

    let hoistway = options.hoistway.clone().map_or_else(cargo::packaged, Ok)?;
    let directory = std::env::temp_dir().join(format!("hoistway-monitoring-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let result = observe(options, &hoistway, &monitoring.join("hoistway.rules.yml"), &directory);
    fs::remove_dir_all(&directory)?;
    result
}

/// Checks that Grafana's published model of dashboards has all fields of the dashboard. Skipped
/// without the Python package that has the model.
fn check_model() -> Result<()> {
    let dashboard = repository::root().join(dashboard::PATH);
    let output = Command::new("python3").args(["-c", MODEL]).arg(&dashboard).output();
    let output = output.context("cannot start python3")?;
    if output.status.code() == Some(3) {
        println!("SKIPPED: the model of dashboards is missing: pip install grafana-foundation-sdk");
        return Ok(());
    }
    let found = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && found.is_empty(), "{}: {found}", dashboard.display());
    println!("the dashboard has fields of Grafana's model only");
    Ok(())
}

/// Starts server, load and Prometheus, and evaluates all expressions under load.
fn observe(options: &Options, hoistway: &Path, rules: &Path, directory: &Path) -> Result<()> {
    let metrics = free_address()?;
    let config = directory.join("hoistway.toml");
    fs::write(&config, configuration(directory, &metrics))?;
    let server =
        Server::start(Command::new(hoistway).args(["serve", "--config"]).arg(&config), &directory.join("server.log"))?;
    check_text(&metrics, options.install)?;
    let prometheus = Prometheus::start(&metrics, rules, directory)?;
    let load = directory.join("load.fio");
    fs::write(&load, jobs(directory, options.seconds + 60))?;
    let mut fio = Command::new("fio");
    let printed = directory.join("fio.out");
    let output = fs::File::create(&printed)?;
    fio.arg(&load).stdout(output.try_clone()?).stderr(output);
    let mut fio = Background(fio.spawn().context("cannot start fio")?);
    println!("load for {} s", options.seconds);
    std::thread::sleep(Duration::from_secs(options.seconds));
    let ended = fio.0.try_wait()?;
    ensure!(ended.is_none(), "fio ended early: {}", fs::read_to_string(&printed)?);
    let samples = check_text(&metrics, false)?;
    println!("{samples} samples under load, valid OpenMetrics");

    let mut failed = Vec::new();
    let dashboard = Dashboard::read()?;
    for (title, expression) in dashboard.expressions() {
        let found = prometheus.query(&with_values(&expression, &metrics))?;
        println!("{title:<42} {}", summary(&found));
        if found.is_empty() && !OPTIONAL.iter().any(|name| expression.contains(name)) {
            failed.push(format!("{title}: no value: {expression}"));
        }
    }
    if let Some(directory) = &options.render {
        draw(&dashboard, &prometheus, options, &metrics, directory)?;
    }
    let alerts = prometheus.labels("ALERTS")?;
    failed.extend(alerts.iter().map(|alert| format!("an alert without a reason: {alert}")));
    drop((fio, prometheus));
    server.stop()?;
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// Draws the dashboard with the answers of the time under load. Without Chromium or npm it prints
/// that this was skipped.
fn draw(
    dashboard: &Dashboard,
    prometheus: &Prometheus,
    options: &Options,
    metrics: &str,
    directory: &Path,
) -> Result<()> {
    if options.install {
        programs::require_all(&render::PROGRAMS, true)?;
    } else if let Some(missing) = render::missing() {
        println!("SKIPPED: drawing the dashboard: {missing}");
        return Ok(());
    }
    let to_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let time = (to_s.saturating_sub(options.seconds), to_s);
    render::render(dashboard, prometheus, time, |expression| with_values(expression, metrics), directory)
}

/// Parses the text of a scrape, and returns the number of samples.
fn check_text(metrics: &str, install: bool) -> Result<u64> {
    let has_parser = Command::new(PYTHON).args(["-c", "import prometheus_client"]).stderr(Stdio::null()).status()?;
    if !has_parser.success() {
        ensure!(install, "the parser of OpenMetrics is missing: apt-get install {PARSER}, or pass --install");
        programs::install(&[PARSER])?;
    }
    let printed = programs::output(Command::new(PYTHON).args(["-c", PARSE, &format!("http://{metrics}/metrics")]))?;
    printed.trim().parse().with_context(|| format!("no number of samples: {printed}"))
}

/// Returns an address of the loopback interface on which no program listens.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.to_string())
}

/// Returns the configuration of a server with an export of 2 GiB for each tenant.
fn configuration(directory: &Path, metrics: &str) -> String {
    let mut text = format!(
        "[listen]\nsocket = \"{}\"\n[metrics]\naddress = \"{metrics}\"\n\
         [[device]]\nname = \"disk\"\nbackend = \"mem:8G\"\ndrive = \"sata-7200-2006\"\n",
        socket(directory).display()
    );
    for (index, (name, terms, _)) in TENANTS.iter().enumerate() {
        text += &format!("[[export]]\nname = \"{name}\"\noffset = \"{}G\"\nsize = \"2G\"\n", 2 * index);
        text += &format!("[[tenant]]\nname = \"{name}\"\nexport = \"{name}\"\n{terms}\n");
    }
    text
}

/// Returns the job file with a job for each tenant.
fn jobs(directory: &Path, seconds: u64) -> String {
    let mut text = format!("[global]\nioengine=nbd\ntime_based\nruntime={seconds}\nsize=2G\n");
    for (name, _, job) in TENANTS {
        text += &format!("[{name}]\n{job}\nuri=nbd+unix:///{name}?socket={}\n", socket(directory).display());
    }
    text
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("nbd.socket")
}

/// A Prometheus that scrapes the server.
struct Prometheus {
    url: String,
    _process: Background,
}

impl Prometheus {
    fn start(metrics: &str, rules: &Path, directory: &Path) -> Result<Prometheus> {
        let config = directory.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: {SCRAPE_S}s, evaluation_interval: {SCRAPE_S}s}}\nrule_files: ['{}']\n\
             scrape_configs: [{{job_name: hoistway, static_configs: [{{targets: ['{metrics}']}}]}}]\n",
            rules.display()
        );
        fs::write(&config, text)?;
        let address = free_address()?;
        let log = directory.join("prometheus.log");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()));
        command.arg(format!("--web.listen-address={address}")).stderr(fs::File::create(&log)?);
        let process = Background(command.spawn().context("cannot start prometheus")?);
        let prometheus = Prometheus { url: format!("http://{address}"), _process: process };
        let start = Instant::now();
        while !prometheus.query("up == 1").is_ok_and(|found| !found.is_empty()) {
            if start.elapsed() > PROMETHEUS_START_MAX {
                bail!("Prometheus does not scrape the server: {}", fs::read_to_string(&log)?);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(prometheus)
    }

    /// Evaluates an expression and returns its series.
    fn series(&self, expression: &str) -> Result<Vec<Value>> {
        self.ask(&["instant"], expression)
    }

    /// Evaluates an expression at each scrape between two times, and returns its series.
    fn range(&self, expression: &str, (from_s, to_s): (u64, u64)) -> Result<Vec<Value>> {
        let arguments =
            ["range".into(), format!("--start={from_s}"), format!("--end={to_s}"), format!("--step={SCRAPE_S}s")];
        self.ask(&arguments.each_ref().map(String::as_str), expression)
    }

    fn ask(&self, arguments: &[&str], expression: &str) -> Result<Vec<Value>> {
        let mut command = Command::new("promtool");
        command.args(["query", "--format=json"]).args(arguments).args([&self.url, expression]);
        let output = command.output()?;
        ensure!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr).trim());
        serde_json::from_slice(&output.stdout).with_context(|| format!("the answer to {expression}"))
    }

    /// Evaluates an expression and returns the values that are numbers.
    fn query(&self, expression: &str) -> Result<Vec<f64>> {
        let values = self.series(expression)?;
        let number = |series: &Value| series["value"][1].as_str()?.parse().ok();
        Ok(values.iter().filter_map(number).filter(|value: &f64| value.is_finite()).collect())
    }

    /// Evaluates an expression and returns the labels of its series.
    fn labels(&self, expression: &str) -> Result<Vec<String>> {
        Ok(self.series(expression)?.iter().map(|series| series["metric"].to_string()).collect())
    }
}

/// Replaces Grafana's variables in an expression: everything of one instance.
fn with_values(expression: &str, instance: &str) -> String {
    [("$__rate_interval", "20s"), ("$__range", "1m"), ("$instance", instance), ("$device", ".*"), ("$tenant", ".*")]
        .iter()
        .fold(expression.to_owned(), |text, (variable, value)| text.replace(variable, value))
}

/// Formats the number of series and the range of their values.
fn summary(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() {
        "no value".to_owned()
    } else {
        format!("{:>3} series, {least:.4} to {most:.4}", values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_the_dashboard_has_a_value() {
        for (title, expression) in Dashboard::read().unwrap().expressions() {
            let text = with_values(&expression, "127.0.0.1:1");
            assert!(!text.contains('$'), "{title}: a variable without a value: {text}");
        }
    }

    #[test]
    fn metrics_without_a_sample_on_most_machines_are_those_of_the_dashboard() {
        let all = Dashboard::read().unwrap().expressions();
        for name in OPTIONAL {
            assert_eq!(all.iter().filter(|(_, expression)| expression.contains(name)).count(), 1, "{name}");
        }
    }
}
