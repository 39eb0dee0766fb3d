//! The cost of a command for the simulator. Run in release: `cargo test --release -p hoistway-drive
//! -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use hoistway_drive::{Access, Drive, Op, Profile, closed_loop};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[test]
#[ignore = "measures time, in release only"]
fn random_reads_cost_less_than_200_ns_to_serve() {
    let mut slow = Vec::new();
    for name in ["sata-7200-2006", "scsi-15k-73", "cheetah15k5_146", "wd_4tb_7200", "slide-7200"] {
        let mut drive = Drive::new(&Profile::builtin(name).expect("built in"));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let capacity = drive.capacity_sectors() - 8;
        let sectors: Vec<u64> = (0..1_000_000).map(|_| random.random_range(0..capacity)).collect();
        let mut now_ns = 0;
        let begun = Instant::now();
        for sector in &sectors {
            let access = Access { op: Op::Read, sector: *sector, sectors: 8 };
            now_ns = black_box(drive.serve(now_ns, access).expect("within the drive")).service.finish_ns;
        }
        let each_ns = begun.elapsed().as_nanos() as f64 / sectors.len() as f64;
        println!("{name}: {each_ns:.0} ns a random read");
        if each_ns >= 200.0 {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "200 ns or more: {slow:?}");
}

#[test]
#[ignore = "measures time, in release only"]
fn random_reads_32_at_a_time_cost_less_than_400_ns_each() {
    let mut slow = Vec::new();
    for name in ["cmr-4tb", "cmr-8tb", "cmr-20tb", "sas-15k-450"] {
        let mut drive = Drive::new(&Profile::builtin(name).expect("built in"));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let capacity = drive.capacity_sectors() - 8;
        let sectors: Vec<u64> = (0..1_000_000).map(|_| random.random_range(0..capacity)).collect();
        let begun = Instant::now();
        let commands = sectors.iter().map(|sector| Access { op: Op::Read, sector: *sector, sectors: 8 }.into());
        black_box(closed_loop(&mut drive, 0, 32, commands, |_, _| {}).expect("within the drive"));
        let each_ns = begun.elapsed().as_nanos() as f64 / sectors.len() as f64;
        println!("{name}: {each_ns:.0} ns a random read of 32 under way");
        if each_ns >= 400.0 {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "400 ns or more: {slow:?}");
}
