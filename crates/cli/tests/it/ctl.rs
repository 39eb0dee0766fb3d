//! `hoistway ctl` and `hoistway top` against sockets with prepared replies.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use crate::common::{Folder, run};

/// Listens at a path in a folder and replies to each line with the result of a function; an empty
/// result ends the connection.
fn listen(folder: &Folder, answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = UnixListener::bind(folder.path("control")).expect("a socket");
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
            for line in lines.map_while(Result::ok) {
                let reply = answer(&line);
                if reply.is_empty() || stream.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    folder.name("control")
}

#[test]
fn values_of_paths_are_printed_line_by_line() {
    let folder = Folder::new();
    let control = listen(&folder, |line| match line {
        "ls devices" => "= sda/\n= sdb/\nok\n".into(),
        "get -r tenants/db" => "= tenants/db/weight: 3\n= tenants/db/class: idle\nok\n".into(),
        "get a" => "= 1\nok\n".into(),
        "get b" => "= \n= 2\nok\n".into(),
        "get -r" => "= everything\nok\n".into(),
        "set a/b -5" => "ok: it has no effect\n".into(),
        other => format!("error request: {other}\n"),
    });
    for (args, printed) in [
        (&["ls", "devices"][..], "sda/\nsdb/\n"),
        (&["get", "-r", "tenants/db"], "tenants/db/weight: 3\ntenants/db/class: idle\n"),
        (&["get", "a", "b"], "1\n\n2\n"),
        (&["get", "-r"], "everything\n"),
        (&["set", "a/b", "-5"], ""),
    ] {
        let args: Vec<&str> = ["ctl"].iter().chain(args).chain(&["--control", &control]).copied().collect();
        let ran = run(&args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), printed), "{args:?}: {}", ran.err);
        assert_eq!(ran.err.is_empty(), !printed.is_empty(), "{args:?}: {}", ran.err);
    }
    assert_eq!(run(&["ctl", "set", "a/b", "-5", "--control", &control]).err, "warning: it has no effect\n");
}

#[test]
fn an_error_of_the_server_is_printed_unchanged() {
    let folder = Folder::new();
    let control = listen(&folder, |_| "error value: \"2000\" is out of range: weight takes 1 to 1000\n".into());
    let ran = run(&["ctl", "set", "tenants/db/weight", "2000", "--control", &control]);
    ran.refused(1, &["error: \"2000\" is out of range: weight takes 1 to 1000\n"]);
}

#[test]
fn an_absent_or_foreign_server_is_reported() {
    let folder = Folder::new();
    let get = |control: &str| run(&["ctl", "get", "server/version", "--control", control]);
    get(&folder.name("absent")).refused(1, &["there is no control socket", "absent", "`hoistway serve` starts one"]);
    run(&["top", "--once", "--control", &folder.name("absent")]).refused(1, &["there is no control socket"]);
    drop(UnixListener::bind(folder.path("left")).expect("a socket"));
    get(&folder.name("left")).refused(1, &["no server listens at", "the server has ended"]);
    get(&folder.file("plain", "")).refused(1, &["no server listens at"]);
    let hangs_up = listen(&folder, |_| String::new());
    get(&hangs_up).refused(1, &["has closed the connection"]);
    // The greeting of an NBD server, without a line break, and no further data.
    let listener = UnixListener::bind(folder.path("nbd")).expect("a socket");
    thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(b"NBDMAGICIHAVEOPT\0\x03");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    get(&folder.name("nbd")).refused(1, &["is where NBD clients connect"]);
}

#[test]
fn a_wrong_command_line_needs_no_server() {
    run(&["ctl", "get"]).refused(2, &["<PATH>"]);
    run(&["ctl", "set", "a b", "1", "--control", "/nowhere"]).refused(1, &["there is no control socket /nowhere"]);
    run(&["ctl", "help", "tennants"]).refused(2, &["there is no path \"tennants\"; did you mean \"tenants\"?"]);
    run(&["ctl", "help", "x", "--markdown"]).refused(2, &["cannot be used with"]);
    run(&["top", "--interval", "0"]).refused(2, &["expected 0.1 to 3600 seconds"]);
    let help = run(&["ctl", "help", "devices/NAME/queue"]);
    assert!(help.code == Some(0) && help.out.contains("devices/NAME/queue/iosched/TUNABLE"), "{}", help.err);
    assert!(!help.out.contains("tenants/"), "{}", help.out);
}

#[test]
fn a_value_with_a_line_break_is_refused() {
    let folder = Folder::new();
    let control = listen(&folder, |_| "= asked\nok\n".into());
    run(&["ctl", "get", "a\nset b 1", "--control", &control]).refused(1, &["cannot be sent"]);
    run(&["ctl", "set", "a b", "1", "--control", &control]).refused(2, &["blanks in names are written %20"]);
}

#[test]
fn one_sample_is_a_table_or_json() {
    let folder = Folder::new();
    let tenants = "db rbytes=0 rios=0 waiting=2 in_flight=1 weight=300 class=none bytes=0.600 entitlement=0.750";
    let device = format!(
        "= devices/sda/queue/scheduler: noop [bfq]\n= devices/sda/queue/depth: 2\n= devices/sda/tenants: {tenants}\n\
         = devices/sda/histogram: db queue 1024:5\n= devices/sda/inflight: 1 0\n= devices/sda/slice: db\nok\n"
    );
    let control = listen(&folder, move |line| match line {
        "get -r server" => "= server/version: 0.1.0\n= server/uptime: 5.00\nok\n".into(),
        "ls devices" => "= sda/\nok\n".into(),
        "get -r devices/sda" => device.clone(),
        other => format!("error request: {other}\n"),
    });
    let top = |args: &[&str]| {
        let all = ["top", "--interval", "0.1", "--control", &control];
        run(&all.iter().chain(args).copied().collect::<Vec<_>>())
    };
    let json = top(&["--json"]).json();
    let tenant = &json["devices"][0]["tenants"][0];
    assert_eq!((&json["schema"], &tenant["name"], &tenant["share"]), (&1.into(), &"db".into(), &0.6.into()));
    assert_eq!((&tenant["has_slice"], &tenant["queue_p50_ns"]), (&true.into(), &serde_json::Value::Null));
    // Without a terminal, the output is the same without --once.
    let table = top(&[]);
    assert!(table.code == Some(0) && table.out.starts_with("sda [bfq] depth 2"), "{}{}", table.out, table.err);
    assert!(table.out.contains("!60.0") && table.out.contains("slice: db"), "{}", table.out);
    top(&["--device", "sdx"]).refused(2, &["the server has no device \"sdx\"; it has sda"]);
}
