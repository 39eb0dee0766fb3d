//! The playground's library answers as the command does, to the byte.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use serde_json::{Value, json};

use crate::common::{Folder, Ran, hoistway};

const JOB: &str = "[stream]\nrw=read\nbs=4k\nsize=512k\n\
                   [writer]\nrw=randwrite\nbs=16k\nsize=8m\nnumber_ios=12\n\
                   [direct]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=40\n";

fn command(job: &str, options: &[&str]) -> Ran {
    let folder = Folder::new();
    folder.file("a.fio", job);
    let mut command = hoistway(&["compare", "a.fio", "--json"]);
    Ran::of(command.args(options).current_dir(folder.path("")).output().expect("it starts"))
}

fn playground(choices: Value) -> Value {
    let mut request = choices;
    request["kind"] = "compare".into();
    request["name"] = "a.fio".into();
    serde_json::from_str(&hoistway_playground::answer(&request.to_string(), &|_, _| {})).expect("JSON")
}

/// A comparison of all elevators at once would exceed the memory of a browser.
const ELEVATORS_AT_A_TIME: usize = 6;

#[test]
fn every_elevator_on_every_drive_gets_the_document_of_the_command() {
    let elevators: Vec<&str> = Kind::ALL.iter().map(|kind| kind.info().name).collect();
    for drive in Profile::names() {
        for elevators in elevators.chunks(ELEVATORS_AT_A_TIME) {
            let ran = command(JOB, &["--drive", drive, "--elevators", &elevators.join(",")]);
            let answer = playground(json!({"job": JOB, "drive": drive, "elevators": elevators}));
            assert!(!ran.out.is_empty(), "{}", ran.err);
            assert!(answer["ok"]["document"] == ran.out.as_str(), "{drive} differs: {} {}", ran.err, answer["error"]);
        }
    }
}

#[test]
fn defaults_settings_and_several_seeds_get_the_document_of_the_command() {
    let ran = command(JOB, &[]);
    assert_eq!(playground(json!({"job": JOB}))["ok"]["document"], ran.out.as_str());
    let options =
        ["--elevators", "bfq,cfq-v3", "--set", "bfq.slice_idle=0", "--kernel", "4.19", "--seed", "5", "--seeds", "3"];
    let ran = command(JOB, &[&options[..], &["--runtime", "2s", "--scale", "0.5"]].concat());
    let choices = json!({"job": JOB, "elevators": ["bfq", "cfq-v3"], "set": ["bfq.slice_idle=0"], "kernel": "4.19",
        "seed": 5, "seeds": 3, "runtime": "2s", "scale": 0.5});
    assert_eq!(playground(choices)["ok"]["document"], ran.out.as_str());
}

#[test]
fn a_wrong_job_file_gets_the_message_of_the_command_and_its_line() {
    let job = "[a]\nsize=1m\nrw=reed\n";
    let (ran, error) = (command(job, &[]), playground(json!({"job": job}))["error"].take());
    assert!(ran.err.contains(error["message"].as_str().expect("a message")), "{} {error}", ran.err);
    assert_eq!(error["line"], 3);
}
