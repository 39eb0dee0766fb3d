//! Arbitrary text as the profile of a drive: a drive that serves requests, or an error with its
//! position.
#![no_main]

use hoistway_drive::{Access, Drive, Op, Profile};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Profile::from_toml(text, "drive.toml") {
        Ok(profile) => serve(&profile),
        Err(error) => assert!(error.to_string().contains("drive.toml"), "{error}"),
    }
});

/// Serves commands with an accepted drive. All sectors can be accessed, and completion times never
/// decrease.
fn serve(profile: &Profile) {
    let mut drive = Drive::new(profile);
    let capacity = drive.capacity_sectors();
    let mut now_ns = 0u64;
    for (sector, op) in
        [(0, Op::Read), (capacity / 2, Op::Write), (capacity.saturating_sub(8), Op::Read), (capacity, Op::Read)]
    {
        if let Ok(completion) = drive.serve(now_ns, Access { op, sector, sectors: 8 }) {
            let service = completion.service;
            assert!(sector < capacity && service.finish_ns >= now_ns, "{service:?}");
            now_ns = service.finish_ns;
        }
    }
}
