//! The request of a comparison: what the user chose, and the defaults for the rest.

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, HostConfig, Kernel, Setting};

use super::defaults::{CompareDefaults, Named, default_host, named_elevators};
use super::shorten::Shortening;

/// The choices of a user for a comparison.
#[derive(Debug)]
pub struct CompareChoices {
    /// The name of the job file.
    pub job: String,
    /// The jobs.
    pub jobs: JobFile,
    /// Bounds on the jobs.
    pub shortening: Shortening,
    /// The drive; `None` for that of [`CompareDefaults`].
    pub drive: Option<Profile>,
    /// The elevators; none for those of [`CompareDefaults`].
    pub elevators: Vec<Named>,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// The host.
    pub host: HostChoice,
    /// The seed of all random numbers.
    pub seed: u64,
    /// If true, head positions and slices are recorded, which a page shows.
    pub record: bool,
    /// The values for everything that was not chosen.
    pub defaults: CompareDefaults,
}

/// The host of a comparison.
#[derive(Clone, Debug)]
pub enum HostChoice {
    /// [`default_host`] for the elevators.
    Default,
    /// The host of 2.6.18, with each elevator in the block layer of its own kernel.
    Own,
    /// The host of a kernel.
    Kernel(Kernel),
    /// A host with a name, such as that of its file.
    Config(String, Box<HostConfig>),
}

/// A request with the facts that its result is described by.
#[derive(Clone, Debug)]
pub struct CompareSetup {
    /// The request.
    pub request: CompareRequest,
    /// The name of the job file.
    pub job: String,
    /// The host in a few words.
    pub host: String,
    /// Tunables that differ from their defaults, and bounds on the jobs, in their written form.
    pub settings: Vec<String>,
    /// The defaults for these jobs.
    pub defaults: CompareDefaults,
    /// True if the drive is that of the defaults.
    pub has_default_drive: bool,
    /// Notes on the shortening of jobs.
    pub notes: Vec<String>,
}

impl CompareSetup {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// The end of a sentence about the list of elevators, from [`named_elevators`].
    pub fn new(choices: CompareChoices) -> Result<CompareSetup, String> {
        let CompareChoices { job, mut jobs, shortening, drive, elevators, settings, host, seed, record, defaults } =
            choices;
        let notes = shortening.apply(&mut jobs);
        let elevators = named_elevators(&elevators, || defaults.elevators.clone())?;
        let has_default_drive = drive.is_none();
        let host_words = host.words(&elevators);
        let request = CompareRequest {
            jobs,
            profile: drive.unwrap_or_else(|| defaults.profile()),
            host: host.config(&elevators),
            elevators,
            settings,
            seed,
            record,
        };
        let settings = request.settings.iter().map(|setting| setting.text().to_owned());
        let settings = shortening.texts().chain(settings).collect();
        Ok(CompareSetup { request, job, host: host_words, settings, defaults, has_default_drive, notes })
    }
}

impl HostChoice {
    /// Parses the kernel of a host: a version, or `own`.
    ///
    /// # Errors
    /// The errors of [`Kernel::parse`].
    pub fn parse(name: &str) -> Result<HostChoice, String> {
        match name {
            "own" => Ok(HostChoice::Own),
            _ => Kernel::parse(name).map(HostChoice::Kernel).map_err(|error| format!("{error}, and own")),
        }
    }

    /// The host for these elevators.
    pub fn config(&self, elevators: &[Kind]) -> HostConfig {
        match self {
            HostChoice::Default => default_host(elevators),
            HostChoice::Own => HostConfig::default(),
            HostChoice::Kernel(kernel) => HostConfig::kernel(*kernel),
            HostChoice::Config(_, host) => (**host).clone(),
        }
    }

    /// The host in two or three words.
    fn words(&self, elevators: &[Kind]) -> String {
        match (self, self.config(elevators).kernel) {
            (HostChoice::Config(name, _), _) => format!("host {name}"),
            (_, Some(kernel)) => format!("Linux {}", kernel.name()),
            (_, None) => "each elevator in its own kernel".to_owned(),
        }
    }
}
