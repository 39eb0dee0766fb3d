"""The example of a search with Optuna, by two processes that share a study."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY

SEARCH = REPOSITORY / "examples/search/search.py"
TRIALS = 6


def test_two_processes_search_one_study(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    journal = pytest.importorskip("optuna.storages.journal")
    study_file = tmp_path / "study.log"
    command = [sys.executable, str(SEARCH), str(study_file), "--trials", str(TRIALS)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    for process in processes:
        printed, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        assert printed.startswith("best of ")
    storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(study_file)))
    study = optuna.load_study(study_name="cfq-v3", storage=storage)
    complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    assert len(complete) == 2 * TRIALS
    assert len({trial.user_attrs["process"] for trial in complete}) == 2
    defaults = [trial.value for trial in complete if trial.params["slice_idle"] == 8 and trial.number < 2]
    assert defaults and study.best_value <= min(defaults)
