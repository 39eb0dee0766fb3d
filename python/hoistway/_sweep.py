"""Sweeps: thousands of simulations, on this machine or on a cluster."""

import concurrent.futures
import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hoistway._custom import CustomElevator, names, register, version_of
from hoistway._hoistway import (
    HoistwayError,
    SweepFolder,
    SweepPlan,
    UsageError,
    __version__,
    simulate_batch,
    sweep_page,
)
from hoistway._page import frame, write_page
from hoistway._progress import bar

if TYPE_CHECKING:
    import pandas
    import polars


Elevators = tuple[tuple[type[CustomElevator], str], ...]
"""Classes of elevators with their versions."""

POINTS_PER_TASK = 256
"""The most points of a task that has several batches."""
WRITERS = 4
"""The number of files that the driver writes at a time: each waits for the disk."""


class Batch(NamedTuple):
    """A range of points whose results share a pair of files."""

    start: int
    end: int
    done: list[str]
    """The names of points that have a result already."""


class Task(NamedTuple):
    """The unit of work of an engine: some batches, with everything that a worker needs."""

    sweep: str
    """The sweep with the texts of all files that it names."""
    version: str
    elevators: Elevators
    """The classes of elevators that the sweep names, with their versions."""
    batches: list[Batch]


class Files(NamedTuple):
    """The results of a batch: two Parquet files."""

    name: str
    points: bytes
    jobs: bytes
    rows: int
    failed: int
    first_error: str | None


def simulate(task: Task) -> list[Files]:
    """Simulates the batches of a task; runs on workers. Equal batches give equal bytes on every machine."""
    for elevator, version in task.elevators:
        register(elevator, version)
    results = (simulate_batch(task.sweep, task.version, (start, end), done) for start, end, done in task.batches)
    return [Files(*files) for files in results if files is not None]


class Engine(Protocol):
    """An engine that runs tasks elsewhere: what `sweep` needs of it."""

    def slots(self) -> int:
        """The number of tasks that can run at a time."""

    def submit(self, task: Task) -> Any:
        """Starts a task and returns its future."""

    def first(self, running: list[Any]) -> tuple[Any, list[Files]]:
        """Waits until a task has ended, and returns its future and its result."""

    def cancel(self, running: list[Any]) -> None:
        """Ends tasks whose results are not wanted."""


class _Futures:
    """Executors of `concurrent.futures`."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor

    def slots(self) -> int:
        return int(getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1)

    def submit(self, task: Task) -> Any:
        return self._executor.submit(simulate, task)

    def first(self, running: list[Any]) -> tuple[Any, list[Files]]:
        done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        future = next(iter(done))
        return future, future.result()

    def cancel(self, running: list[Any]) -> None:
        for future in running:
            future.cancel()


class _Dask:
    """A client of `dask.distributed`; its scheduler runs the tasks of a lost worker again."""

    def __init__(self, client: Any) -> None:
        # A worker that cannot read a task ends itself, and the sweep would wait for ever.
        found = client.run(importlib.util.find_spec, "hoistway")
        if None in found.values():
            raise _package_missing()
        from distributed import as_completed

        self._client = client
        # It fetches results while the driver writes others.
        self._completed = as_completed(with_results=True)

    def slots(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def submit(self, task: Task) -> Any:
        future = self._client.submit(simulate, task, pure=False)
        self._completed.add(future)
        return future

    def first(self, running: list[Any]) -> tuple[Any, list[Files]]:
        future, results = next(self._completed)
        return future, results

    def cancel(self, running: list[Any]) -> None:
        self._client.cancel(running)


class _Ray:
    """Ray, which runs the tasks of a lost worker again."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._simulate = ray.remote(max_retries=3)(simulate)

    def slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, task: Task) -> Any:
        return self._simulate.remote(task)

    def first(self, running: list[Any]) -> tuple[Any, list[Files]]:
        (future, *_), _ = self._ray.wait(running, num_returns=1)
        return future, self._ray.get(future)

    def cancel(self, running: list[Any]) -> None:
        for future in running:
            self._ray.cancel(future, force=True)


def _engine(on: Any) -> Engine:
    if isinstance(on, concurrent.futures.Executor):
        return _Futures(on)
    name = on if isinstance(on, str) else getattr(on, "__name__", "")
    if name == "ray":
        import ray

        return _Ray(ray)
    if type(on).__module__.partition(".")[0] == "distributed":
        return _Dask(on)
    raise UsageError(
        f"on={on!r}: a distributed.Client, the module ray, or an executor of concurrent.futures would be right"
    )


class SweepResult:
    """The results of a sweep, which are Parquet files in a folder."""

    def __init__(self, output: Path, summary: Mapping[str, Any]) -> None:
        self.output = output
        self.points: int = summary["points"]
        """The number of points of the sweep."""
        self.simulated: int = summary["simulated"]
        """Points whose result this call wrote."""
        self.failed: int = summary["failed"]
        """Points that have an error instead of figures, in the column ``error``."""
        self.first_error: str | None = summary["first_error"]
        """One of these errors."""

    def to_polars(self, table: str = "points") -> "polars.DataFrame":
        """The rows of the points, or those of their ``jobs``, of all sweeps in the folder."""
        import polars

        return polars.concat(
            [polars.read_parquet(file) for file in self._files(table)], how="diagonal_relaxed"
        )

    def to_pandas(self, table: str = "points") -> "pandas.DataFrame":
        """The same as a dataframe of pandas."""
        import pandas

        return pandas.concat([pandas.read_parquet(file) for file in self._files(table)], ignore_index=True)

    def page(
        self, path: str | os.PathLike[str], *, measure: str | None = None, over: tuple[str, str] | None = None
    ) -> None:
        """Writes the page of all results in the folder: the effect of each key, a heat map, the Pareto
        front of throughput and latency.

        Args:
            path: the file, one self-contained HTML document.
            measure: the column of numbers to draw; by default throughput and the 99th percentile of latency.
            over: the two keys of the heat map; by default those with the greatest effects.

        Raises:
            UsageError: there is no such column or key; the text names those that there are.
            HoistwayError: no point has figures, or a file cannot be written or read.
        """
        write_page(path, sweep_page(self.output, measure, over))

    def _repr_html_(self) -> str | None:
        """The page in a frame of its own, for notebooks."""
        try:
            return frame(sweep_page(self.output, None, None))
        except HoistwayError:
            # Without figures the notebook shows the text.
            return None

    def _files(self, table: str) -> list[Path]:
        return sorted((self.output / table).glob("*.parquet"))

    def __repr__(self) -> str:
        return (
            f"SweepResult({str(self.output)!r}: {self.simulated} of {self.points} points simulated, "
            f"{self.failed} with an error)"
        )


def sweep(
    spec: str | os.PathLike[str] | Mapping[str, Any],
    output: str | os.PathLike[str],
    *,
    on: Any = None,
    threads: int | None = None,
    progress: bool = True,
) -> SweepResult:
    """Runs the points of a sweep that have no result in a folder yet, as ``hoistway sweep`` does.

    Args:
        spec: a sweep file, or a dictionary with the keys of one. Its elevators can be classes
            derived from `CustomElevator`.
        output: the folder of the results. It is created; a sweep that was interrupted goes on.
        on: where the simulations run: `None` is this machine, otherwise a `distributed.Client`,
            the module `ray` after ``ray.init()``, or an executor of `concurrent.futures`. The files
            are the same, byte by byte.
        threads: the number of simulations at a time on this machine.
        progress: shows a bar of tqdm, if tqdm is installed.

    Raises:
        HoistwayError: the sweep is wrong, the folder is in use or has results of another version,
            or workers lack this version of the package.
        KeyboardInterrupt: Ctrl-C was pressed. The results so far are in the folder.
    """
    output = Path(output)
    elevators: Elevators = ()
    if isinstance(spec, Mapping):
        spec, elevators = _named(spec)
        plan = SweepPlan.from_dict(spec, os.getcwd())
    else:
        plan = SweepPlan.load(spec)
    engine = None if on is None else _engine(on)
    folder = SweepFolder(output)
    try:
        if engine is None:
            summary = folder.run(plan, threads, progress)
            if summary["is_partial"]:
                raise KeyboardInterrupt
            return SweepResult(output, summary)
        folder.write_sweep(plan)
        return SweepResult(output, _distribute(engine, plan, folder, elevators, progress))
    finally:
        folder.close()


def _named(spec: Mapping[str, Any]) -> tuple[dict[str, Any], Elevators]:
    """The sweep with the names of its elevators, and the classes among them."""
    elevators = spec.get("elevators", [])
    if isinstance(elevators, (str, type)):
        elevators = [elevators]
    classes = tuple((each, version_of(each)) for each in elevators if isinstance(each, type))
    return {**spec, "elevators": names(elevators)}, classes


def _tasks(plan: SweepPlan, folder: SweepFolder, elevators: Elevators, slots: int) -> Iterator[Task]:
    """The batches that are not complete in the folder, several to a task.

    The scheduler of an engine takes some ms for a task, so that small batches share one. A task has
    a share of one half of the remaining batches, as in factoring (Hummel, Schonberg and Flynn, 1992):
    the last tasks are small, so that the workers end together.
    """
    sweep, ranges = plan.self_contained, plan.batches()
    batches: list[Batch] = []
    points = share = 0
    for number, (start, end) in enumerate(ranges):
        if not batches:
            points, share = 0, (len(ranges) - number) // (2 * slots)
        done = folder.done(plan, start, end)
        if done is not None:
            batches.append(Batch(start, end, done))
            points += end - start
        if batches and (len(batches) >= share or points + end - start > POINTS_PER_TASK):
            yield Task(sweep, __version__, elevators, batches)
            batches = []
    if batches:
        yield Task(sweep, __version__, elevators, batches)


def _distribute(
    engine: Engine, plan: SweepPlan, folder: SweepFolder, elevators: Elevators, progress: bool
) -> dict[str, Any]:
    """Runs the tasks, a bounded number at a time, so that the memory of all processes is flat."""
    summary: dict[str, Any] = {"points": plan.points, "simulated": 0, "failed": 0, "first_error": None}
    slots = engine.slots()
    running: list[Any] = []
    most = 2 * slots + 1
    with bar(plan.points, "points", progress) as shown, concurrent.futures.ThreadPoolExecutor(WRITERS) as writers:
        try:
            for task in _tasks(plan, folder, elevators, slots):
                running.append(engine.submit(task))
                if len(running) >= most:
                    _take(engine, running, folder, writers, summary, shown)
            while running:
                _take(engine, running, folder, writers, summary, shown)
        except BaseException:
            engine.cancel(running)
            raise
    return summary


def _take(
    engine: Engine,
    running: list[Any],
    folder: SweepFolder,
    writers: concurrent.futures.Executor,
    summary: dict[str, Any],
    shown: Any,
) -> None:
    """Writes the results of a task that has ended."""
    try:
        future, results = engine.first(running)
    except Exception as error:
        if _lacks_package(error):
            raise _package_missing() from error
        raise
    running.remove(future)
    for _ in writers.map(lambda files: folder.write_batch(files.name, files.points, files.jobs), results):
        pass
    for files in results:
        summary["simulated"] += files.rows
        summary["failed"] += files.failed
        summary["first_error"] = summary["first_error"] or files.first_error
        shown.update(files.rows)


def _package_missing() -> HoistwayError:
    return HoistwayError(
        f"a worker lacks the package hoistway: install version {__version__} in the environment of the workers, "
        "and in that of the scheduler"
    )


def _lacks_package(error: BaseException | None) -> bool:
    """Returns true if an error, or a cause of it, is the missing package."""
    while error is not None:
        if "No module named 'hoistway'" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
