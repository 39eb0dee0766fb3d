"""Searches the tunables of cfq-v3 with Optuna, by ask and tell.

    pip install ./python optuna
    python examples/search/search.py study.log --trials 40

Several processes with the same study share its trials: start the program again in another terminal,
or on another machine that sees the file. A database (`optuna.storages.RDBStorage`) does the same
without a shared directory.
"""

import argparse
import os

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import hoistway as hw

# A process that reads small blocks at random, beside readers that stream.
JOB = hw.JobFile(
    """
[point]
rw=randread
bs=4k
size=256m
number_ios=150

[streams]
rw=read
bs=64k
size=16m
numjobs=3
""",
    name="mixed.fio",
)
DRIVE = hw.drives["sata-7200-2006"]
# Each value is the mean over these seeds, so that the search does not fit one placement of the files.
SEEDS = range(1, 3)
RANGES = {"slice_idle": (0, 16), "quantum": (1, 32), "slice_sync": (10, 400)}


def latency_ms(tunables: dict[str, int]) -> float:
    """The mean latency of the random reads, in milliseconds."""
    settings = {f"cfq-v3.{name}": value for name, value in tunables.items()}
    comparison = hw.compare(JOB, drive=DRIVE, elevators=["cfq-v3"], tunables=settings, seeds=SEEDS, progress=False)
    jobs = comparison.jobs
    rows = zip(jobs["job"], jobs["latency_mean_ns"], strict=True)
    means = [mean / 1e6 for name, mean in rows if name == "point"]
    return sum(means) / len(means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="the file of the study")
    parser.add_argument("--trials", type=int, default=40, help="the number of trials of this process")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(arguments.study))
    study = optuna.create_study(study_name="cfq-v3", storage=storage, direction="minimize", load_if_exists=True)
    # The defaults are a trial, too: the best trial is not worse.
    tunables = hw.elevators["cfq-v3"].tunables
    study.enqueue_trial({name: tunables[name].default for name in RANGES}, skip_if_exists=True)
    for _ in range(arguments.trials):
        trial = study.ask()
        trial.set_user_attr("process", os.getpid())
        values = {name: trial.suggest_int(name, low, high) for name, (low, high) in RANGES.items()}
        study.tell(trial, latency_ms(values))
    print(f"best of {len(study.trials)} trials: {study.best_value:.2f} ms with {study.best_params}")


if __name__ == "__main__":
    main()
