"""Elevators that are classes of Python."""

import concurrent.futures
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pytest

import hoistway as hw
from conftest import contents
from custom_elevators import Arrival, Losing, Raising, Starving, Twice
from hoistway import QueuedRequest, QueueState
from hoistway._custom import version_of

READERS = hw.JobFile("[readers]\nrw=read\nbs=128k\nsize=2m\nnumjobs=4\n")
DISK = "sata-7200-2006"


def test_the_same_algorithm_has_the_same_figures_as_noop() -> None:
    # From 6.1 on `none` issues requests past the queue, which an elevator does not.
    both = hw.compare(READERS, drive=DISK, elevators=["noop", Arrival], kernel="3.2")
    rows = both.table.to_dict()
    assert rows["elevator"] == ["noop", "arrival"]
    for column in ("bytes_per_s", "turns", "latency_p99_ns", "drive_seek_ns"):
        assert rows[column][0] == rows[column][1], column


def test_it_runs_beside_others_under_every_host_and_with_seeds() -> None:
    for kernel in ("2.6.18", "3.2", "6.1", "own", None):
        compared = hw.compare(READERS, drive=DISK, elevators=["cfq-v3", Arrival], kernel=kernel, seeds=2)
        assert compared.table["elevator"] == ["cfq-v3", "arrival"] * 2
    assert "arrival" in compared.verdict
    assert "arrival" in str(compared.to_dict()["elevators"])


def test_prediction_of_a_trace() -> None:
    trace = hw.trace.open(str(Path(__file__).parents[2] / "examples/two-readers/disk*"))
    predicted = hw.whatif(trace, elevators=["noop", Arrival], drive=DISK, recorded="cfq-v3", progress=False)
    if predicted.holds:
        assert predicted.table["elevator"] == ["noop", "arrival"]


def test_a_request_is_one_object_with_the_elevators_own_attributes() -> None:
    seen: list[tuple[str, QueuedRequest]] = []

    class Watching(Arrival):
        def insert(self, queue: QueueState, request: QueuedRequest) -> None:
            super().insert(queue, request)
            request.note = f"from {request.pid}"
            seen.append(("insert", request))

        def merged(self, queue: QueueState, request: QueuedRequest) -> None:
            seen.append(("merged", request))

        def complete(self, queue: QueueState, request: QueuedRequest) -> None:
            super().complete(queue, request)
            seen.append(("complete", request))

        def exit(self, pid: int) -> None:
            raise AssertionError("no process ends")

    queue = hw.Queue(Watching)
    process = queue.process(pid=7, io_class="realtime", level=2)
    assert [queue.submit(process, "read", sector, 8).result for sector in (800, 808)] == ["queued", "merged"]
    (request,) = queue.run()
    queue.advance(1000)
    queue.complete(request)
    assert [call for call, _ in seen] == ["insert", "merged", "complete"]
    first = seen[0][1]
    assert all(each is first for _, each in seen)
    assert (first.sector, first.sectors, first.end, first.op, first.pid) == (800, 16, 816, "read", 7)
    assert (first.is_sync, first.io_class, first.level, first.submitted_ns) == (True, "realtime", 2, 0)
    assert first.note == "from 7"
    assert repr(first) == "<the read of 16 sectors at sector 800 by process 7>"


def test_a_timer_makes_it_go_on() -> None:
    class Late(Arrival):
        """Waits for 2 ms before each request"""

        def __init__(self) -> None:
            super().__init__()
            self.may_go = False

        def dispatch(self, queue: QueueState) -> QueuedRequest | None:
            if self.may_go or queue.is_draining:
                self.may_go = False
                return super().dispatch(queue)
            if queue.queued and queue.timer_ns is None:
                queue.set_timer(queue.now_ns + 2_000_000)
            return None

        def timer(self, queue: QueueState) -> None:
            assert queue.timer_ns is None
            self.may_go = True

    queue = hw.Queue(Late)
    process = queue.process(pid=1)
    queue.submit(process, "read", 0, 8)
    assert list(queue.run()) == []
    assert queue.waits
    queue.advance(1_999_999)
    assert list(queue.run()) == []
    queue.advance(1)
    assert [request.sector for request in queue.run()] == [0]


def test_tunables_are_attributes() -> None:
    class Tuned(Arrival):
        tunables = {"unused": 3, "limit": hw.Tunable("limit", "requests", 5, 1, 10, "A limit.", "None.")}
        limit: int
        unused: int
        found: list[tuple[int, int]] = []

        def __init__(self) -> None:
            super().__init__()
            self.found.append((self.unused, self.limit))

        def dispatch(self, queue: QueueState) -> QueuedRequest | None:
            self.found.append((self.unused, self.limit))
            return super().dispatch(queue)

    hw.simulate(READERS, Tuned, drive=DISK, tunables={"limit": "7 requests"})
    assert Tuned.found[0] == (3, 5), "the defaults are there in __init__"
    assert set(Tuned.found[1:]) == {(3, 7)}
    with pytest.raises(hw.UsageError, match="limit takes 1 to 10"):
        hw.simulate(READERS, Tuned, drive=DISK, tunables={"limit": 11})
    with pytest.raises(hw.UsageError, match="tuned has no tunable `limits`.*limit"):
        hw.simulate(READERS, Tuned, drive=DISK, tunables={"limits": 1})


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (Twice, "call 3 of dispatch, at .* returned the read of .* by process .*, which (has completed|had been dispatched before)"),
        (Losing, "returned nothing although .* the oldest is the read of"),
        (Starving, "passed over the read of .* by process .*: it has waited for 5.* while later requests were dispatched"),
    ],
)
def test_a_wrong_elevator_is_told_what_it_did(wrong: type[hw.CustomElevator], rule: str) -> None:
    # The readers of the starving elevator read for longer than it may let one wait.
    job = READERS.replace({"readers.size": "1g"}) if wrong is Starving else READERS
    with pytest.raises(hw.HoistwayError, match=f"elevator `{wrong.__name__.lower()}` with seed 1: .*{rule}"):
        hw.simulate(job, wrong, drive=DISK)


def test_an_exception_is_raised_as_it_is() -> None:
    with pytest.raises(LookupError, match="no room for <the read") as raised:
        hw.simulate(READERS, Raising, drive=DISK, seed=3)
    if sys.version_info >= (3, 11):
        (note,) = raised.value.__notes__
        assert note.startswith("in elevator `raising` with seed 3: call ")
    assert raised.traceback[-1].name == "complete"
    queue = hw.Queue(Raising)
    process = queue.process(pid=1)
    with pytest.raises(LookupError):
        for sector in range(0, 8000, 800):
            queue.submit(process, "read", sector, 8)
            for request in queue.run():
                queue.complete(request)


def test_a_constructor_that_fails() -> None:
    class Unmade(Arrival):
        def __init__(self) -> None:
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        hw.simulate(READERS, Unmade, drive=DISK)


def test_what_dispatch_returns_is_checked() -> None:
    class Number(Arrival):
        def dispatch(self, queue: QueueState) -> Any:
            return 5

    with pytest.raises(TypeError, match="dispatch returned 5: a request that was inserted, or None, would be right"):
        hw.simulate(READERS, Number, drive=DISK)


def test_what_is_no_elevator() -> None:
    class Half(hw.CustomElevator):
        def insert(self, queue: QueueState, request: QueuedRequest) -> None: ...

    class Cfq(Arrival): ...

    class Odd(Arrival):
        name = "My Elevator"

    class Untunable(Arrival):
        tunables = {"depth": hw.Tunable("depth", "furlongs", 1, 1, 2, "", "")}

    for wrong, text in [
        (Half, "the elevator Half has no method `dispatch`"),
        (Cfq, "an elevator cannot be named `cfq`: a built-in elevator has this name"),
        (Odd, "an elevator cannot be named `My Elevator`"),
        (Untunable, "there is no unit `furlongs`; there are ms,"),
        (int, "<class 'int'> is no elevator"),
        (5, "5 is no elevator"),
    ]:
        with pytest.raises(hw.UsageError, match=text):
            hw.compare(READERS, drive=DISK, elevators=[wrong])  # type: ignore[list-item]


def test_a_changed_class_has_another_version() -> None:
    def made(number: int) -> type[hw.CustomElevator]:
        class Made(Arrival):
            def twice(self) -> int:
                return 2 * 1 if number == 1 else 3

        class Other(Arrival):
            def twice(self) -> int:
                return 2 + 2

        return Made if number < 3 else Other

    assert version_of(made(1)) == version_of(made(1))
    assert version_of(made(1)) != version_of(made(3))
    assert version_of(Arrival) != version_of(Losing)

    class Stated(Arrival):
        version = "7"

    assert version_of(Stated) == "7"


def spec(*elevators: Any) -> dict[str, Any]:
    return {
        "jobs": [{"name": "readers", "text": "[readers]\nrw=read\nbs=128k\nsize=4m\nnumjobs=2\n"}],
        "drives": [DISK],
        "elevators": list(elevators),
        "seeds": "1-4",
    }


def test_a_sweep_runs_a_class_again_only_if_it_has_changed(tmp_path: Path) -> None:
    def version(stated: str) -> type[hw.CustomElevator]:
        return type("Changing", (Arrival,), {"version": stated})

    first = hw.sweep(spec("noop", version("1")), tmp_path)
    assert (first.points, first.simulated, first.failed) == (8, 8, 0)
    assert hw.sweep(spec("noop", version("1")), tmp_path).simulated == 0
    assert hw.sweep(spec("noop", version("2")), tmp_path).simulated == 4


def test_a_sweep_with_a_wrong_class_has_rows_with_the_error(tmp_path: Path) -> None:
    result = hw.sweep(spec("noop", Losing, Raising), tmp_path)
    assert (result.points, result.simulated, result.failed) == (12, 12, 8)
    errors = result.to_polars().filter(elevator="raising")["error"].to_list()
    assert len(errors) == 4
    for error in errors:
        assert "failed: LookupError: no room for <the read" in error and "in complete (custom_elevators.py:" in error


def test_workers_run_classes_of_a_module_with_the_same_bytes(tmp_path: Path) -> None:
    swept = spec("cfq", Arrival, Losing)
    hw.sweep(swept, tmp_path / "local")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        hw.sweep(swept, tmp_path / "workers", on=executor)
    assert contents(tmp_path / "workers") == contents(tmp_path / "local") != {}


def test_workers_of_dask_run_classes_of_a_notebook(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    program = """
class Newest(hw.CustomElevator):
    "The newest request first"
    def __init__(self): self.requests = []
    def insert(self, queue, request): self.requests.append(request)
    def dispatch(self, queue): return self.requests.pop() if self.requests else None
"""
    # A class of no module, as in a notebook.
    names: dict[str, Any] = {"hw": hw, "__name__": "__main__"}
    exec(program, names)
    swept = spec("cfq", names["Newest"])
    hw.sweep(swept, tmp_path / "local")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            hw.sweep(swept, tmp_path / "workers", on=client)
    assert contents(tmp_path / "workers") == contents(tmp_path / "local") != {}
