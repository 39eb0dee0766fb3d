"""Drives, elevators and job files as objects."""

import pickle
from pathlib import Path

import pytest

import hoistway as hw
from conftest import run_command


def test_a_drive_is_replaced_by_one_with_other_keys() -> None:
    drive = hw.drives["cmr-8tb"]
    slower = drive.replace(rpm=5400)
    assert "rpm = 5400" in slower.toml and "rpm = 7200" in drive.toml
    assert slower.capacity_bytes == drive.capacity_bytes
    assert drive.replace(**{"disk.rpm": 5400.0}).describe() == slower.describe()
    job = hw.JobFile("[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=200\ndirect=1\n")
    rates = [hw.simulate(job, "deadline", drive=one).table["bytes_per_s"][0] for one in (drive, slower)]
    assert rates[1] < rates[0]


def test_wrong_keys_of_a_drive_are_refused() -> None:
    drive = hw.drives["cmr-8tb"]
    with pytest.raises(hw.HoistwayError, match="the drive has no key `rmp`"):
        drive.replace(rmp=5400)
    with pytest.raises(hw.HoistwayError, match="rpm"):
        drive.replace(rpm=-1)
    with pytest.raises(TypeError):
        drive.replace(rpm=object())


def test_unknown_names_are_key_errors_with_the_text_of_the_command() -> None:
    with pytest.raises(KeyError) as raised:
        hw.drives["cmr-9tb"]
    assert str(raised.value) in run_command("drives", "cmr-9tb").stderr
    with pytest.raises(KeyError) as raised:
        hw.elevators["dedline"]
    assert str(raised.value) in run_command("elevators", "dedline").stderr


def test_all_drives_and_elevators_are_there() -> None:
    assert all(hw.drives[name].name == name for name in hw.drives)
    assert len(hw.elevators) >= 18 and hw.elevators["as"].name == "anticipatory"
    idle = hw.elevators["cfq-v3"].tunables["slice_idle"]
    assert (idle.unit, idle.default) == ("ms", 8)


def test_a_job_file_is_replaced_by_one_with_other_options(readers: str) -> None:
    job = hw.JobFile(readers)
    more = job.replace({"readers.numjobs": 8}, bs="4k", direct=True)
    assert job["readers"]["numjobs"] == "4" and more["readers"]["numjobs"] == "8"
    assert more["global"] == {"bs": "4k", "direct": "1"}
    assert "numjobs" not in more.without("readers", "numjobs")["readers"]
    again = pickle.loads(pickle.dumps(more))
    assert str(again) == str(more) and again.name == more.name


def test_wrong_options_are_refused_with_the_right_ones(readers: str) -> None:
    job = hw.JobFile(readers)
    with pytest.raises(hw.UsageError, match="did you mean `numjobs`"):
        job.replace({"readers.numjob": 8})
    with pytest.raises(hw.UsageError, match=r"no section \[writers\]"):
        job.replace({"writers.numjobs": 8})
    with pytest.raises(hw.HoistwayError, match="numjobs"):
        job.replace({"readers.numjobs": "many"})


def test_drives_are_sent_to_other_processes(tmp_path: Path) -> None:
    drive = hw.drives["cmr-8tb"].replace(rpm=5400)
    assert pickle.loads(pickle.dumps(drive)).toml == drive.toml
