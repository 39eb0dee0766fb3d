"""The request queue by hand: what must hold for every elevator."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoistway as hw

SECTORS = 1 << 20
# A step: submit (process, operation, sector, sectors), take a request, complete one, or wait.
STEPS = st.one_of(
    st.tuples(
        st.just("submit"),
        st.integers(0, 3),
        st.sampled_from(["read", "write"]),
        st.integers(0, 64).map(lambda block: block * 8),
        st.integers(1, 16),
        st.booleans(),
    ),
    st.tuples(st.just("dispatch")),
    st.tuples(st.just("complete"), st.integers(0, 100)),
    st.tuples(st.just("advance"), st.integers(0, 20_000_000)),
)


class Driver:
    """A driver that counts what the queue gives it."""

    def __init__(self, elevator: str, plugging: bool) -> None:
        self.queue = hw.Queue(elevator, plugging=plugging, nr_requests=8)
        self.processes = [self.queue.process(pid=100 + number) for number in range(4)]
        self.bios: dict[int, int] = {}
        self.asleep: set[int] = set()
        self.device: list[hw.Request] = []
        self.dispatched: Counter[int] = Counter()
        self.completed: Counter[int] = Counter()

    def submit(self, process: int, op: str, sector: int, sectors: int, sync: bool) -> None:
        if process in self.asleep:
            return
        bio = self.queue.submit(self.processes[process], op, sector, sectors, sync=sync)  # type: ignore[arg-type]
        self.bios[bio.token] = sectors
        if bio.result == "asleep":
            self.asleep.add(process)

    def dispatch(self) -> bool:
        request = self.queue.dispatch()
        if request is None:
            return False
        self.device.append(request)
        self.dispatched.update(request.tokens)
        # Merges keep bytes: a request has the sectors of its bios.
        assert request.sectors == sum(self.bios[token] for token in request.tokens)
        return True

    def complete(self, choice: int) -> None:
        if self.device:
            request = self.device.pop(choice % len(self.device))
            self.completed.update(self.queue.complete(request))

    def drain(self) -> None:
        """Serves everything; an elevator that idles for ever fails."""
        for _ in range(10_000):
            self.queue.unplug()
            while self.dispatch():
                pass
            if self.device:
                self.complete(0)
            elif (timer := self.queue.next_timer_ns) is not None and not self.queue.is_empty:
                self.queue.advance(max(0, timer - self.queue.now_ns))
            elif self.queue.is_empty:
                return
            else:
                pytest.fail("requests are queued, the device is idle, and no timer is armed")
        pytest.fail("the queue does not become empty")


@pytest.mark.parametrize("elevator", list(hw.elevators))
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=60), plugging=st.booleans())
def test_every_bio_is_dispatched_once_and_completed_once(
    elevator: str, steps: list[tuple[object, ...]], plugging: bool
) -> None:
    driver = Driver(elevator, plugging)
    for name, *arguments in steps:
        if name == "advance":
            driver.queue.advance(*arguments)  # type: ignore[arg-type]
        else:
            getattr(driver, str(name))(*arguments)
    driver.drain()
    assert driver.dispatched == driver.completed == Counter(dict.fromkeys(driver.bios, 1))
    assert driver.queue.in_flight == 0


def test_deadline_sorts_by_sector_and_merges() -> None:
    queue = hw.Queue("deadline")
    reader = queue.process(pid=1)
    results = [queue.submit(reader, "read", sector, 8).result for sector in (800, 0, 8)]
    assert results == ["queued", "queued", "merged"]
    requests = list(queue.run())
    assert [(request.sector, request.sectors, request.pid) for request in requests] == [(0, 16, 1), (800, 8, 1)]
    assert queue.complete(requests[0]) == [2, 3]
    with pytest.raises(hw.UsageError, match="completed already"):
        queue.complete(requests[0])


def test_cfq_idles_for_the_process_of_the_slice_until_its_timer() -> None:
    queue = hw.Queue("cfq-v3")
    one, two = queue.process(pid=1), queue.process(pid=2)
    # A process that thinks briefly is worth waiting for.
    for sector in (0, 8, 16):
        queue.submit(one, "read", sector, 8, sync=True)
        for request in queue.run():
            queue.advance(100_000)
            queue.complete(request)
    queue.submit(two, "read", 8_000, 8, sync=True)
    if queue.dispatch() is None:
        timer = queue.next_timer_ns
        assert timer is not None and timer > queue.now_ns and not queue.is_empty
        queue.advance(timer - queue.now_ns)
        other = queue.dispatch()
        assert other is not None and other.pid == 2


def test_a_clock_of_the_caller_is_read_by_each_call() -> None:
    now = [0]
    queue = hw.Queue("noop", clock=lambda: now[0])
    process = queue.process(pid=1)
    queue.submit(process, "write", 0, 8)
    now[0] = 5
    assert queue.now_ns == 5 and queue.dispatch() is not None
    now[0] = 4
    with pytest.raises(hw.UsageError, match="backwards"):
        queue.dispatch()
    with pytest.raises(hw.UsageError):
        queue.advance(1)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(hw.UsageError, match="did you mean `deadline`"):
        hw.Queue("dedline")
    queue = hw.Queue("deadline")
    process = queue.process(pid=1)
    with pytest.raises(hw.UsageError, match="at least one sector"):
        queue.submit(process, "read", 0, 0)
    with pytest.raises(hw.UsageError, match="no operation `raed`"):
        queue.submit(process, "raed", 0, 8)  # type: ignore[arg-type]
    with pytest.raises(hw.UsageError, match="out of range"):
        queue.process(pid=2, level=9)
    with pytest.raises(hw.UsageError, match="fifo_batch"):
        queue.set_tunable("fifo_bach", 3)
    queue.set_tunable("fifo_batch", 3)
    assert queue.tunables["fifo_batch"] == 3
