"""The time of a sweep on an engine with two workers, and the memory of its processes.

Usage: engines.py ENGINE SWEEP OUTPUT, for example engines.py dask sweep.toml results. ENGINE is
local, processes, dask or ray. Prints a JSON object: the seconds of the sweep, without those of the
start of the engine and of its workers, and the greatest resident memory of this process and of a
worker, in bytes.
"""

import concurrent.futures
import contextlib
import importlib
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import hoistway as hw

WORKERS = 2
TASKS = 2 * WORKERS
"""Tasks of `TASK_SECONDS`, of which each worker has some."""
TASK_SECONDS = 0.2
WARM_UP = {
    "jobs": [{"name": "warm-up", "text": "[reader]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=1\n"}],
    "drives": ["null"],
    "elevators": ["noop"],
    "seeds": "1-32",
}

Engine = tuple[Any, Callable[[Callable[[], int]], list[int]]]
"""What `hoistway.sweep` takes as `on`, and a function that calls another in tasks on all workers."""


def load() -> int:
    """Loads the package and returns the number of the process."""
    importlib.import_module("hoistway")
    time.sleep(TASK_SECONDS)
    return os.getpid()


def peak() -> int:
    """The greatest resident memory of this process, in bytes."""
    time.sleep(TASK_SECONDS)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextlib.contextmanager
def local() -> Iterator[Engine]:
    """Threads of this process."""
    yield None, lambda function: [function()] * WORKERS


@contextlib.contextmanager
def processes() -> Iterator[Engine]:
    """An executor of `concurrent.futures`."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context) as executor:
        yield executor, lambda function: [one.result() for one in [executor.submit(function) for _ in range(TASKS)]]


@contextlib.contextmanager
def dask() -> Iterator[Engine]:
    """A cluster of Dask, whose scheduler is in this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client, lambda function: list(client.run(function).values())


@contextlib.contextmanager
def ray() -> Iterator[Engine]:
    """Ray on this machine."""
    import ray as engine

    engine.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    yield engine, lambda function: engine.get([engine.remote(function).remote() for _ in range(TASKS)])
    engine.shutdown()


ENGINES = {"local": local, "processes": processes, "dask": dask, "ray": ray}


def main() -> None:
    """Runs the sweep and prints its figures."""
    name, sweep, output = sys.argv[1:]
    with ENGINES[name]() as (on, call), tempfile.TemporaryDirectory() as warm_up:
        # Engines start workers when they have tasks for them.
        while on is not None and len(set(call(load))) < WORKERS:
            pass
        hw.sweep(WARM_UP, warm_up, on=on, progress=False)
        begun = time.perf_counter()
        result = hw.sweep(sweep, output, on=on, threads=WORKERS if on is None else None, progress=False)
        seconds = time.perf_counter() - begun
        if result.simulated != result.points or result.failed:
            raise SystemExit(f"not all points have figures: {result}; {result.first_error}")
        print(json.dumps({"seconds": seconds, "driver": peak(), "worker": max(call(peak))}))


if __name__ == "__main__":
    main()
