"""Every I/O scheduler of Linux ("elevator") as a library.

>>> import hoistway as hw
>>> job = hw.JobFile("[readers]\\nrw=read\\nsize=8m\\nnumjobs=4\\n")
>>> comparison = hw.compare(job, drive="sata-7200-2006", elevators=["cfq-v3", "deadline"])
>>> comparison.table.column_names[:3]
['elevator', 'seed', 'bytes_per_s']

Times are in nanoseconds (names end in ``_ns``), rates in bytes a second (``_bytes_per_s``), sizes in
bytes; a sector has 512 bytes. Errors are `HoistwayError` with the text that the command prints.
"""

from hoistway import trace
from hoistway._catalogue import Elevator, Tunable, drives, elevators
from hoistway._compare import Comparison, compare, simulate
from hoistway._custom import CustomElevator
from hoistway._hoistway import (
    Drive,
    HoistwayError,
    InternalError,
    QueuedRequest,
    QueueState,
    Table,
    UsageError,
    __version__,
)
from hoistway._jobs import JobFile
from hoistway._predict import Advice, Prediction, advise, reproduce, whatif
from hoistway._queue import Process, Queue, Request, Submission
from hoistway._sweep import SweepResult, sweep

__all__ = [
    "Advice",
    "Comparison",
    "CustomElevator",
    "Drive",
    "Elevator",
    "HoistwayError",
    "InternalError",
    "JobFile",
    "Prediction",
    "Process",
    "Queue",
    "QueueState",
    "QueuedRequest",
    "Request",
    "Submission",
    "SweepResult",
    "Table",
    "Tunable",
    "UsageError",
    "__version__",
    "advise",
    "compare",
    "drives",
    "elevators",
    "reproduce",
    "simulate",
    "sweep",
    "trace",
    "whatif",
]
