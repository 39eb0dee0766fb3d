"""Predictions from traces, advice, and published results."""

import os
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from hoistway import _hoistway
from hoistway._compare import native_drive, settings
from hoistway._custom import ElevatorLike, names
from hoistway._hoistway import Drive
from hoistway._jobs import JobLike, native_job
from hoistway._page import frame, write_page
from hoistway._result import Result
from hoistway.trace import Trace


class Prediction(Result):
    """A recorded workload as it would run under other elevators."""

    def __init__(self, native: _hoistway.Prediction) -> None:
        super().__init__(native)
        self._native = native

    @property
    def holds(self) -> bool:
        """True if the model is good enough; otherwise there is no table, and `to_dict` has errors."""
        return self._native.holds


def whatif(
    trace: Trace,
    *,
    elevators: ElevatorLike | Iterable[ElevatorLike] = (),
    drive: Drive | str | os.PathLike[str] | None = None,
    recorded: str | None = None,
    loop: str | None = None,
    depth: int | None = None,
    kernel: str | None = None,
    tunables: Mapping[str, object] | None = None,
    device: str | None = None,
    record: bool = False,
    progress: bool = True,
) -> Prediction:
    """Predicts a recorded workload under other elevators, as ``hoistway trace whatif`` does.

    Args:
        trace: the trace.
        elevators: names, classes derived from `CustomElevator`, ``"history"`` or ``"all"``; by default
            all.
        drive: a drive; ``"fit"`` fits one to the trace. By default the one that the trace names,
            else a fitted one.
        recorded: the elevator of the recording, if the trace does not name it.
        loop: for a trace without completions: ``"open"``, ``"closed"`` or ``"closed:N"``.
        depth: the most requests in the drive.
        kernel: the kernel whose block layer all elevators run in.
        tunables: values by ``ELEVATOR.TUNABLE``.
        device: the device, as in ``"8,0"``; by default the one with the most requests.
        record: records head positions, which the page then shows.
        progress: shows a bar of tqdm, if tqdm is installed.

    Raises:
        UsageError: an argument is wrong, or the trace does not name its elevator.
        HoistwayError: the trace cannot be used.
    """
    fit = drive == "fit"
    choices = SimpleNamespace(
        elevators=names(elevators),
        drive=None if fit else native_drive(drive),
        fit=fit,
        recorded=recorded,
        loop_model=loop,
        depth=depth,
        kernel=kernel,
        settings=settings(tunables),
        device=device,
        record=record,
    )
    return Prediction(_hoistway.whatif(trace._native, choices, progress))


class Advice:
    """The scheduler advised for a drive and a workload, with the reason."""

    def __init__(self, native: _hoistway.Advice) -> None:
        self._native = native

    @property
    def scheduler(self) -> str:
        """The advised scheduler."""
        return self._native.scheduler

    @property
    def because(self) -> str:
        """The figure that decided, in a sentence."""
        return self._native.because

    def to_dict(self) -> dict[str, Any]:
        """The document of ``hoistway advise --json``."""
        return self._native.to_dict()

    def page(self, path: str | os.PathLike[str]) -> None:
        """Writes the page: one self-contained HTML file."""
        write_page(path, self._native.html())

    def _repr_html_(self) -> str:
        return frame(self._native.html())

    def __repr__(self) -> str:
        return repr(self._native)


def advise(
    *,
    job: JobLike | None = None,
    trace: Trace | None = None,
    use: str | None = None,
    drive: Drive | str | os.PathLike[str] | None = None,
    host: str | os.PathLike[str] | None = None,
    objective: str | None = None,
    seeds: int = 5,
    seed: int = 1,
    all_schedulers: bool = False,
    progress: bool = True,
) -> Advice:
    """Advises a scheduler for a drive and one workload, as ``hoistway advise`` does.

    Args:
        job: the workload as a job file.
        trace: the workload as a trace.
        use: a typical workload: desktop, database, vm-host, backup or media.
        drive: the drive; needed unless the trace names one.
        host: a host file.
        objective: what counts, as in ``"p99(reader) min"``.
        seeds: the number of seeds, 2 or more.
        seed: the first seed.
        all_schedulers: also simulates the schedulers of other kernels, which are never advised.
        progress: shows a bar of tqdm, if tqdm is installed.

    Raises:
        UsageError: an argument is wrong or missing.
        HoistwayError: the workload cannot be simulated.
    """
    choices = SimpleNamespace(
        job=None if job is None else native_job(job),
        trace=None if trace is None else trace._native,
        use_name=use,
        drive=native_drive(drive),
        host=None if host is None else os.fspath(host),
        objective=objective,
        seeds=seeds,
        seed=seed,
        all_schedulers=all_schedulers,
    )
    return Advice(_hoistway.advise(choices, progress))


def reproduce(*ids: str, progress: bool = True) -> dict[str, Any]:
    """Measures published results again: the document of ``hoistway reproduce --json``.

    Args:
        *ids: rows such as ``"S1-06"`` or publications such as ``"S1"``; by default all.
        progress: shows a bar of tqdm, if tqdm is installed.

    Raises:
        UsageError: there is no such row.
    """
    return _hoistway.reproduce(list(ids), progress)
