//! Prints the requests of the test of byte equality, each followed by the answer of this program:
//! every elevator on every drive, films, and requests that fail.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use serde_json::{Value, json};

const JOB: &str = "[stream]\nrw=read\nbs=4k\nsize=512k\n\
                   [writer]\nrw=randwrite\nbs=16k\nsize=8m\nnumber_ios=12\n\
                   [direct]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=40\n";

fn main() {
    let compare = |drive: &str, elevators: &[&str]| json!({"kind": "compare", "job": JOB, "name": "a.fio", "drive": drive, "elevators": elevators});
    for drive in Profile::names() {
        for kind in Kind::ALL {
            print(&compare(drive, &[kind.info().name]));
        }
    }
    let film = |elevator: &str| json!({"kind": "film", "job": JOB, "drive": "sata-7200-2006", "elevators": [elevator], "film": {"from_s": 0.02, "length_s": 0.2}});
    Kind::ALL.iter().for_each(|kind| print(&film(kind.info().name)));
    print(&json!({"kind": "catalogue"}));
    print(&json!({"kind": "compare", "job": "[a]\nrw=foo\nsize=1m\n"}));
    print(&json!({"kind": "compare", "job": JOB, "drive": "floppy"}));
    print(&json!({"kind": "compare", "job": JOB, "elevators": ["bfq", "cfq-v9"]}));
    print(&json!({"kind": "compare", "job": JOB, "elevators": ["bfq"], "set": ["bfq.slice_idle=-1"]}));
}

fn print(request: &Value) {
    let text = request.to_string();
    println!("{text}\n{}", hoistway_playground::answer(&text, &|_, _| {}));
}
