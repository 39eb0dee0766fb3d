"""Comparisons of elevators in the simulator."""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

from hoistway import _hoistway
from hoistway._custom import ElevatorLike, names
from hoistway._hoistway import Drive, Table, UsageError
from hoistway._jobs import JobLike, native_job
from hoistway._result import Result


class Comparison(Result):
    """The results of one job file under several elevators."""

    def __init__(self, native: _hoistway.Comparison) -> None:
        super().__init__(native)
        self._native = native

    @property
    def jobs(self) -> Table:
        """The figures of the jobs, a row for each elevator, seed and job."""
        return self._native.jobs

    @property
    def single_stream_bytes_per_s(self) -> float:
        """The rate of one process of the first job alone."""
        return self._native.single_stream_bytes_per_s

    @property
    def simulated_requests(self) -> int:
        """The number of requests that the simulated drives served."""
        return self._native.simulated_requests


def compare(
    job: JobLike,
    *,
    drive: Drive | str | os.PathLike[str] | None = None,
    elevators: ElevatorLike | Iterable[ElevatorLike] = (),
    tunables: Mapping[str, object] | None = None,
    kernel: str | None = None,
    host: str | os.PathLike[str] | None = None,
    seed: int = 1,
    seeds: int | Sequence[int] | None = None,
    runtime: str | float | None = None,
    scale: float | None = None,
    record: bool = False,
    progress: bool = True,
) -> Comparison:
    """Runs a job file under several elevators and judges the results, as ``hoistway compare`` does.

    Args:
        job: a job file of fio: a path or a `JobFile`.
        drive: a `Drive`, the name of a built-in one, or a drive file; by default the model
            nearest to the device that a job names, else an SSD.
        elevators: names, classes derived from `CustomElevator`, ``"history"``, or ``"all"``; by
            default those of a current kernel.
        tunables: values by ``ELEVATOR.TUNABLE``, for example ``{"cfq-v3.slice_idle": "0ms"}``.
        kernel: the kernel of the host: ``"2.6.18"``, ``"2.6.24"``, ``"3.2"``, ``"6.1"``, ``"6.3"``
            or ``"own"``; by default 6.1 if it has all of the elevators, else ``"own"``.
        host: a host file instead.
        seed: the seed of all random numbers.
        seeds: several seeds: a range such as ``range(8)``, or their number, from `seed` on. They
            show which differences are chance.
        runtime: ends every job after this time: seconds, or a text such as ``"30s"``.
        scale: makes only this part of the requests and of the time of each job, such as 0.1.
        record: records head positions and slices, which the page then shows.
        progress: shows a bar of tqdm, if tqdm is installed and the runs last longer than a second.

    Raises:
        UsageError: an argument is wrong; the text names the right ones.
        HoistwayError: a file cannot be read or is invalid, the jobs ask for the impossible, or an
            answer of a `CustomElevator` breaks a rule. Exceptions in its methods are raised as they
            are.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    first, count = _seeds(seed, seeds)
    choices = SimpleNamespace(
        drive=native_drive(drive),
        elevators=names(elevators),
        settings=settings(tunables),
        kernel=kernel,
        host=None if host is None else os.fspath(host),
        seed=first,
        seeds=count,
        runtime=None if runtime is None else str(runtime),
        scale=scale,
        record=record,
    )
    return Comparison(_hoistway.compare(native_job(job), choices, progress))


def simulate(
    job: JobLike,
    elevator: ElevatorLike,
    *,
    drive: Drive | str | os.PathLike[str] | None = None,
    tunables: Mapping[str, object] | None = None,
    kernel: str | None = None,
    host: str | os.PathLike[str] | None = None,
    seed: int = 1,
    runtime: str | float | None = None,
    scale: float | None = None,
    record: bool = False,
    progress: bool = True,
) -> Comparison:
    """Runs a job file under one elevator; the arguments are those of `compare`.

    Names in `tunables` may lack the elevator: ``{"slice_idle": 0}``.
    """
    (elevator_name,) = names(elevator)
    named = {name if "." in name else f"{elevator_name}.{name}": value for name, value in (tunables or {}).items()}
    return compare(
        job,
        drive=drive,
        elevators=[elevator_name],
        tunables=named,
        kernel=kernel,
        host=host,
        seed=seed,
        runtime=runtime,
        scale=scale,
        record=record,
        progress=progress,
    )


def native_drive(drive: Drive | str | os.PathLike[str] | None) -> Drive | None:
    """The drive of an argument: an object, a name, or a file."""
    return drive if drive is None or isinstance(drive, Drive) else Drive.load(os.fspath(drive))


def settings(tunables: Mapping[str, object] | None) -> list[str]:
    """Tunables in the form of the command: ``ELEVATOR.TUNABLE=VALUE``."""

    def text(value: object) -> str:
        return str(int(value)) if isinstance(value, bool) else str(value)

    return [f"{name}={text(value)}" for name, value in (tunables or {}).items()]


def _seeds(seed: int, seeds: int | Sequence[int] | None) -> tuple[int, int]:
    """The first seed and the number of seeds."""
    if seeds is None:
        return seed, 1
    if isinstance(seeds, int):
        first, count = seed, seeds
    else:
        first, count = (seeds[0] if seeds else 0), len(seeds)
        if any(one != first + index for index, one in enumerate(seeds)):
            raise UsageError("seeds are consecutive numbers, as in range(8)")
    if not 1 <= count <= 1000:
        raise UsageError(f"there are {count} seeds: 1 to 1000 would be right")
    return first, count
