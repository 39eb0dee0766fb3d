"""The request queue by hand, for teaching and tests."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Literal

from hoistway._custom import ElevatorLike, names
from hoistway._hoistway import QueueCore, UsageError

Operation = Literal["read", "write", "discard"]
IoClass = Literal["none", "realtime", "best-effort", "idle"]


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that submits to a queue."""

    number: int
    pid: int


@dataclasses.dataclass(frozen=True)
class Request:
    """A request that the queue gave to the driver."""

    token: int
    """The token of its first bio; it names the request."""
    op: str
    """``read``, ``write``, ``flush`` or ``discard``."""
    sector: int
    sectors: int
    pid: int | None
    tokens: tuple[int, ...]
    """The tokens of all bios that were merged into it, its own included."""


@dataclasses.dataclass(frozen=True)
class Submission:
    """The result of `Queue.submit`."""

    token: int
    """The name of the bio; a completion returns it."""
    result: str
    """``queued``, ``merged`` into a queued request, or ``asleep`` until a request is free: the
    queue then submits the bio by itself."""


class Queue:
    """A request queue of Linux with an elevator, without a disk: the caller is the driver.

    Args:
        elevator: the name of an elevator, or a class derived from `CustomElevator`.
        clock: returns the time in ns; without one, `advance` and `now_ns` set the time.
        plugging: holds back the first requests of an idle queue, so that more can be merged.
        merging: merges bios into queued requests.
        rotational: tells the elevator that the device is a disk.
        nr_requests: the size of the pool for each direction; `None` is unlimited.
        capacity: the most requests in the queue and the device together.
        hz: ticks a second of the clock of older elevators.

    Raises:
        UsageError: there is no such elevator, or a number is out of range.

    >>> q = Queue("deadline")
    >>> one = q.process(pid=1)
    >>> [q.submit(one, "read", sector, 8).result for sector in (800, 0, 8)]
    ['queued', 'queued', 'merged']
    >>> [(r.sector, r.sectors) for r in q.run()]
    [(0, 16), (800, 8)]
    """

    def __init__(
        self,
        elevator: ElevatorLike,
        *,
        clock: Callable[[], int] | None = None,
        plugging: bool = False,
        merging: bool = True,
        rotational: bool = True,
        nr_requests: int | None = None,
        capacity: int = 4096,
        hz: int = 1000,
    ) -> None:
        self._core = QueueCore(names(elevator)[0], plugging, merging, rotational, nr_requests, capacity, hz)
        self._clock = clock
        self._now_ns = 0
        self._tokens = 0

    @property
    def now_ns(self) -> int:
        """The time of the queue in ns."""
        return self._now_ns if self._clock is None else self._clock()

    def advance(self, ns: int) -> None:
        """Moves the time forward and fires the timers that are due on the way."""
        if self._clock is not None or ns < 0:
            raise UsageError("only a queue without a clock of its own can be advanced, and not backwards")
        end_ns = self._now_ns + ns
        while (at_ns := self.next_timer_ns) is not None and at_ns <= end_ns:
            self._now_ns = max(self._now_ns, at_ns)
            self.timer()
        self._now_ns = end_ns

    def process(self, pid: int, *, io_class: IoClass = "none", level: int = 0, nice: int = 0) -> Process:
        """Adds a process with an I/O priority: a class, and a level from 0 (best) to 7."""
        return Process(self._core.add_process(pid, io_class, level, nice), pid)

    def submit(
        self, process: Process, op: Operation, sector: int, sectors: int, *, sync: bool = False
    ) -> Submission:
        """Submits a bio of a process. A sector has 512 bytes; `sync` marks a write as waited for.

        Raises:
            HoistwayError: the queue is full, or the process sleeps.
        """
        self._tokens += 1
        result = self._core.submit(self._tokens, process.number, op, (sector, sectors), sync, self.now_ns)
        return Submission(self._tokens, result)

    def dispatch(self) -> Request | None:
        """Takes the next request; `None` if there is none, or if the elevator waits."""
        taken = self._core.dispatch(self.now_ns)
        return None if taken is None else Request(*taken[:5], tuple(taken[5]))

    def run(self) -> Iterator[Request]:
        """Takes requests until there is none, or until the elevator waits."""
        while (request := self.dispatch()) is not None:
            yield request

    def complete(self, request: Request) -> list[int]:
        """Completes a dispatched request and returns the tokens of its bios.

        Raises:
            UsageError: the request is not in the device.
        """
        return self._core.complete(request.token, self.now_ns)

    def timer(self) -> None:
        """Fires the timers that are due."""
        self._core.timer(self.now_ns)

    def unplug(self) -> None:
        """Starts a plugged queue, as a process that waits for its request does."""
        self._core.unplug(self.now_ns)

    @property
    def next_timer_ns(self) -> int | None:
        """The time of the next timer, in ns."""
        return self._core.next_timer_ns

    @property
    def is_empty(self) -> bool:
        """True if no request waits for the driver."""
        return self._core.is_empty

    @property
    def waits(self) -> bool:
        """True if requests are queued and the elevator waits for a timer."""
        return not self.is_empty and self.next_timer_ns is not None

    @property
    def must_run(self) -> bool:
        """True if the queue asks the driver to take requests."""
        return self._core.must_run

    @property
    def in_flight(self) -> int:
        """The number of requests in the device."""
        return self._core.in_flight

    @property
    def tunables(self) -> dict[str, int]:
        """The values of the elevator's tunables, each in its own unit."""
        return self._core.tunables

    def set_tunable(self, name: str, value: int) -> None:
        """Sets a tunable in its own unit; `hoistway.elevators` describes them."""
        self._core.set_tunable(name, value)
