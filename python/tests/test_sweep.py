"""Sweeps on this machine and on clusters of processes: the same bytes, nothing lost."""

import concurrent.futures
import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import hoistway as hw
from hoistway import _sweep
from conftest import contents, run_command

SWEEP = """
jobs = ["readers.fio"]
drives = ["sata-7200-2006"]
elevators = ["deadline", "cfq-v3"]
seeds = "1-12"
points_per_file = 2
[vary]
"job.readers.numjobs" = [1, 2]
"""


# The time after which a state that a test waits for does not come.
PATIENCE_S = 60


@pytest.fixture
def spec(tmp_path: Path, job_file: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def expected(spec: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files of the command on this machine."""
    printed = run_command("sweep", str(spec), "-o", str(tmp_path / "local"))
    assert printed.returncode == 0, printed.stderr
    return contents(tmp_path / "local")


def test_a_local_sweep_writes_the_files_of_the_command_and_goes_on(
    spec: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    pytest.importorskip("polars")
    result = hw.sweep(spec, tmp_path / "ours")
    assert contents(tmp_path / "ours") == expected
    assert (result.points, result.simulated, result.failed) == (48, 48, 0)
    assert len(result.to_polars()) == len(result.to_pandas()) == 48
    next(iter((tmp_path / "ours/points").iterdir())).unlink()
    assert hw.sweep(spec, tmp_path / "ours").simulated == 2
    assert contents(tmp_path / "ours") == expected


def test_a_sweep_shows_the_page_of_the_command(spec: Path, tmp_path: Path) -> None:
    result = hw.sweep(spec, tmp_path / "results")
    ours, theirs = tmp_path / "ours.html", tmp_path / "theirs.html"
    over = ("job.readers.numjobs", "elevator")
    result.page(ours, measure="latency_mean_ns", over=over)
    options = ["--measure", "latency_mean_ns", "--over", ",".join(over)]
    printed = run_command("sweep", str(tmp_path / "results"), "--report", str(theirs), *options)
    assert printed.returncode == 0, printed.stderr
    assert ours.read_text() == theirs.read_text()
    assert "Main effects" in ours.read_text()
    shown = result._repr_html_()
    assert shown is not None and shown.startswith("<iframe srcdoc=")
    with pytest.raises(hw.UsageError, match="did you mean `bytes_per_s`"):
        result.page(ours, measure="bytes_per_sec")
    with pytest.raises(hw.UsageError, match="`drive` does not vary"):
        result.page(ours, over=("drive", "elevator"))
    for file in (tmp_path / "results/points").iterdir():
        file.unlink()
    assert result._repr_html_() is None


def test_a_dictionary_is_a_sweep(tmp_path: Path, job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = {
        "jobs": ["readers.fio"],
        "drives": ["sata-7200-2006"],
        "elevators": ["cfq-v3"],
        "seeds": [1],
        "vary": {"cfq-v3.slice_idle": [0, 8]},
    }
    result = hw.sweep(keys, tmp_path / "results")
    assert result.simulated == 2 and result.failed == 0


def test_processes_of_this_machine_write_the_same_files(
    spec: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        result = hw.sweep(spec, tmp_path / "processes", on=executor)
    assert contents(tmp_path / "processes") == expected
    assert result.simulated == 48
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        hw.sweep(spec, tmp_path / "threads", on=executor)
    assert contents(tmp_path / "threads") == expected


def test_small_batches_share_a_task_and_tasks_become_smaller(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[_sweep.Task] = []
    simulate = _sweep.simulate

    def noted(task: _sweep.Task) -> list[_sweep.Files]:
        tasks.append(task)
        return simulate(task)

    monkeypatch.setattr(_sweep, "simulate", noted)

    def run(points_per_file: int) -> list[list[int]]:
        tasks.clear()
        spec.write_text(SWEEP.replace("points_per_file = 2", f"points_per_file = {points_per_file}"))
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            hw.sweep(spec, tmp_path / f"of {points_per_file}", on=executor)
        assert [batch.start for task in tasks for batch in task.batches] == list(range(0, 48, points_per_file))
        return [[batch.end - batch.start for batch in task.batches] for task in tasks]

    # One thread: each task is a half of the remaining batches.
    assert [len(task) for task in run(2)] == [12, 6, 3, 1, 1, 1]
    assert run(16) == [[16], [16], [16]]
    monkeypatch.setattr(_sweep, "POINTS_PER_TASK", 8)
    assert [len(task) for task in run(4)] == [2, 2, 2, 2, 2, 1, 1]
    next(iter((tmp_path / "of 4/points").iterdir())).unlink()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        tasks.clear()
        assert hw.sweep(spec, tmp_path / "of 4", on=executor).simulated == 4
    assert [len(task.batches) for task in tasks] == [1]


def test_failed_points_are_rows_with_their_error(tmp_path: Path, spec: Path) -> None:
    spec.write_text(SWEEP.replace("numjobs\" = [1, 2]", "numjobs\" = [1, \"many\"]"))
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        result = hw.sweep(spec, tmp_path / "results", on=executor)
    assert (result.simulated, result.failed) == (48, 24)
    assert result.first_error is not None and "numjobs" in result.first_error


def test_a_worker_of_another_version_is_refused(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sweep, "__version__", "9.9.9")
    with (
        concurrent.futures.ThreadPoolExecutor(1) as executor,
        pytest.raises(hw.HoistwayError, match=r"this worker has hoistway .*, and the sweep runs with 9\.9\.9"),
    ):
        hw.sweep(spec, tmp_path / "results", on=executor)


def test_a_wrong_engine_is_refused(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(hw.UsageError, match=r"a distributed\.Client"):
        hw.sweep(spec, tmp_path / "results", on=3)


def test_ctrl_c_keeps_the_results_so_far(
    spec: Path, tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "results"
    simulate = _sweep.simulate
    tasks: list[_sweep.Task] = []
    is_pressed = threading.Event()

    def held(task: _sweep.Task) -> list[_sweep.Files]:
        tasks.append(task)
        # The sweep does not end before the signal.
        if len(tasks) > 1:
            is_pressed.wait(PATIENCE_S)
        return simulate(task)

    def press() -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if any((output / "points").glob("*.parquet")):
                os.kill(os.getpid(), signal.SIGINT)
                break
            time.sleep(0.01)
        is_pressed.set()

    monkeypatch.setattr(_sweep, "simulate", held)
    thread = threading.Thread(target=press)
    with concurrent.futures.ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        thread.start()
        hw.sweep(spec, output, on=executor)
    thread.join()
    assert contents(output).items() < expected.items()
    hw.sweep(spec, output)
    assert contents(output) == expected


class DaskCluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path, pythonpath: str | None = None) -> None:
        self.file = folder / "scheduler.json"
        environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
        self.scheduler = self._start("scheduler", "--port", "0", "--dashboard-address", ":0", env=environment)
        if pythonpath is not None:
            environment["PYTHONPATH"] = pythonpath
        options = ("--no-nanny", "--nthreads", "1", "--dashboard-address", ":0")
        self.workers = [self._start("worker", *options, env=environment) for _ in range(2)]

    def _start(self, *arguments: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        command += ["--scheduler-file", str(self.file)]
        with (self.file.parent / "cluster.log").open("ab") as log:
            return subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def client(self) -> Any:
        from distributed import Client

        client = Client(scheduler_file=str(self.file), timeout="60s")
        client.wait_for_workers(2, timeout=60)
        return client

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Any:
    pytest.importorskip("distributed")
    cluster = DaskCluster(tmp_path)
    yield cluster
    cluster.stop()


def test_dask_with_a_worker_killed_in_the_middle_writes_the_same_files(
    spec: Path, tmp_path: Path, expected: dict[str, bytes], dask_cluster: Any
) -> None:
    output = tmp_path / "dask"

    def kill() -> None:
        while len(list((output / "points").glob("*.parquet"))) < 4:
            time.sleep(0.01)
        dask_cluster.workers[0].send_signal(signal.SIGKILL)

    with dask_cluster.client() as client:
        thread = threading.Thread(target=kill)
        thread.start()
        result = hw.sweep(spec, output, on=client)
        thread.join()
    assert contents(output) == expected
    assert result.simulated == 48


def test_a_dask_worker_without_the_package_is_named(spec: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    cluster = DaskCluster(tmp_path, pythonpath="")
    try:
        with cluster.client() as client:
            if client.submit(importlib.util.find_spec, "hoistway").result() is not None:
                pytest.skip("the package is installed in the environment of the tests")
            with pytest.raises(hw.HoistwayError, match="a worker lacks the package hoistway"):
                hw.sweep(spec, tmp_path / "results", on=client)
    finally:
        cluster.stop()


@pytest.mark.cluster
def test_ray_with_two_workers_writes_the_same_files(
    spec: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})
    try:
        result = hw.sweep(spec, tmp_path / "ray", on=ray)
    finally:
        ray.shutdown()
    assert contents(tmp_path / "ray") == expected
    assert result.simulated == 48
