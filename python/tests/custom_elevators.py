"""Elevators for the tests, in a module that worker processes import."""

import hoistway as hw
from hoistway import QueuedRequest, QueueState


class Arrival(hw.CustomElevator):
    """First come, first served.

    Two lines more.
    """

    tunables = {"unused": 3}

    def __init__(self) -> None:
        self.requests: list[QueuedRequest] = []
        self.in_drive = 0

    def insert(self, queue: QueueState, request: QueuedRequest) -> None:
        assert queue.queued == len(self.requests) + 1
        self.requests.append(request)

    def dispatch(self, queue: QueueState) -> QueuedRequest | None:
        assert queue.in_flight == self.in_drive
        if not self.requests:
            return None
        self.in_drive += 1
        return self.requests.pop(0)

    def complete(self, queue: QueueState, request: QueuedRequest) -> None:
        self.in_drive -= 1


class Twice(Arrival):
    """Dispatches each third request again"""

    def __init__(self) -> None:
        super().__init__()
        self.last: QueuedRequest | None = None
        self.calls = 0

    def dispatch(self, queue: QueueState) -> QueuedRequest | None:
        self.calls += 1
        if self.last is None or self.calls % 3:
            self.last = super().dispatch(queue)
        return self.last


class Losing(Arrival):
    """Loses the tenth request"""

    inserted = 0

    def insert(self, queue: QueueState, request: QueuedRequest) -> None:
        self.inserted += 1
        if self.inserted != 10:
            self.requests.append(request)


class Starving(Arrival):
    """The process with the highest id first"""

    def dispatch(self, queue: QueueState) -> QueuedRequest | None:
        if not self.requests:
            return None
        self.in_drive += 1
        request = max(self.requests, key=lambda request: request.pid)
        self.requests.remove(request)
        return request


class Raising(Arrival):
    """Raises in the fifth completion"""

    completed = 0

    def complete(self, queue: QueueState, request: QueuedRequest) -> None:
        super().complete(queue, request)
        self.completed += 1
        if self.completed == 5:
            raise LookupError(f"no room for {request!r}")
