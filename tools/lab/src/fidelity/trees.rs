//! The trees of files of a job: the guest creates the directories and files that the simulation of
//! a seed has.

use anyhow::{Context, Result, bail};
use hoistway_sim::file_tree::{self, TreeListing};
use hoistway_sim::{HostConfig, fio};

use super::job;
use super::matrix::Job;

/// Lists the trees of a job on a host, given by the text of its file, one for each walk.
pub fn listings(job: &Job, host: &str, seed: u64) -> Result<Vec<TreeListing>> {
    let walks = job::walks(job.text);
    if walks.is_empty() {
        return Ok(Vec::new());
    }
    let nothing_to_include = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let name = format!("{}.fio", job.name);
    let jobs = fio::parse(&job::simulated(job.text), &name, &|_| None, &nothing_to_include)?;
    let host = HostConfig::from_toml(host, "the host of the guest")?;
    // The partition of the host is smaller than any drive.
    let listings = file_tree::listings(&jobs, &host, u64::MAX, seed).with_context(|| name.clone())?;
    if listings.len() != walks.len() {
        bail!("{name}: {} trees for {} walks: give each section a tree of its own", listings.len(), walks.len());
    }
    Ok(listings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::matrix::JOBS;

    #[test]
    fn every_job_with_walks_has_a_tree_for_each() {
        let host = "kernel = \"6.1\"\npartition_mib = 4096\n";
        let with_trees: Vec<&Job> = JOBS.iter().filter(|job| !job::walks(job.text).is_empty()).collect();
        assert!(with_trees.len() >= 2);
        for job in with_trees {
            let trees = listings(job, host, 1).expect("the trees are small");
            assert!(trees.iter().all(|tree| tree.files.len() >= 1000), "{}", job.name);
            assert_ne!(trees, listings(job, host, 2).expect("the trees are small"), "{}", job.name);
        }
        assert!(listings(&JOBS[0], host, 1).expect("it has none").is_empty());
    }
}
