"""Elevators of one's own: classes that run beside the built-in elevators."""

import hashlib
import re
import types
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from hoistway import _hoistway
from hoistway._catalogue import Tunable
from hoistway._hoistway import QueuedRequest, QueueState, UsageError, register_elevator


class CustomElevator:
    """An elevator that is written in Python: derive a class from it, and name the class where an
    elevator is wanted: ``hw.compare(job, elevators=["bfq", Mine])``.

    The queue merges bios into queued requests. It calls `insert` for each new request, `dispatch`
    whenever the drive can take a request, and `complete` when the drive has finished one. Each run
    has an object of its own. The queue checks the answers; the first one that breaks a rule ends
    the run with an error that names it.

    >>> class Newest(CustomElevator):
    ...     "The newest request first"
    ...     def __init__(self):
    ...         self.stack = []
    ...     def insert(self, queue, request):
    ...         self.stack.append(request)
    ...     def dispatch(self, queue):
    ...         return self.stack.pop() if self.stack else None
    """

    name: ClassVar[str | None] = None
    """The name of the elevator: small letters, digits, hyphens. By default that of the class:
    ``TurnByTurn`` is ``turn-by-turn``."""

    version: ClassVar[str | None] = None
    """Results of different versions count as those of different elevators in a sweep. By default a
    digest of the code of the class."""

    tunables: ClassVar[Mapping[str, int | Tunable]] = {}
    """The tunables by name: a default, or a `Tunable` with its unit and range. Their values are
    attributes of the object."""

    longest_wait_ns: ClassVar[int | None] = _hoistway.longest_wait_ns()
    """The longest time that a request may wait while requests that arrived later are dispatched.
    `None` is for elevators that let processes starve intentionally."""

    def insert(self, queue: QueueState, request: QueuedRequest) -> None:
        """A new request is queued."""
        raise NotImplementedError

    def dispatch(self, queue: QueueState) -> QueuedRequest | None:
        """Chooses the next request for the drive, and forgets it.

        `None` means "none now". An elevator may wait while requests are in the drive, or until the
        timer that it has set, but not while ``queue.is_draining``.
        """
        raise NotImplementedError

    def complete(self, queue: QueueState, request: QueuedRequest) -> None:
        """The drive has finished a request."""

    def timer(self, queue: QueueState) -> None:
        """The time of ``queue.set_timer`` has come. `dispatch` follows if the drive is free."""

    def merged(self, queue: QueueState, request: QueuedRequest) -> None:
        """A bio was merged into a queued request, whose sectors have changed."""

    def exit(self, pid: int) -> None:
        """A process ends. Requests of it may still be queued."""


ElevatorLike = str | type[CustomElevator]

_METHODS = ("insert", "dispatch", "complete", "timer", "merged", "exit")
_registered: dict[str, tuple[type[CustomElevator], str]] = {}


def names(elevators: ElevatorLike | Iterable[ElevatorLike]) -> list[str]:
    """The names of elevators; classes are registered."""
    if isinstance(elevators, str) or not isinstance(elevators, Iterable):
        elevators = [elevators]
    return [elevator if isinstance(elevator, str) else register(elevator) for elevator in elevators]


def register(elevator: type[CustomElevator], version: str | None = None) -> str:
    """Registers a class, and returns the name of the elevator."""
    if not (isinstance(elevator, type) and issubclass(elevator, CustomElevator)):
        raise UsageError(
            f"{elevator!r} is no elevator: a name, or a class that is derived from hoistway.CustomElevator, would be right"
        )
    methods = [name for name in _METHODS if getattr(elevator, name) is not getattr(CustomElevator, name)]
    for name in ("insert", "dispatch"):
        if name not in methods:
            raise UsageError(f"the elevator {elevator.__name__} has no method `{name}`")
    name = elevator.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", elevator.__name__).lower()
    version = version or version_of(elevator)
    if _registered.get(name) == (elevator, version):
        return name
    tunables = [_tunable(key, value) for key, value in elevator.tunables.items()]
    lines = (elevator.__doc__ or elevator.__name__).strip().splitlines()

    def make() -> CustomElevator:
        made = elevator.__new__(elevator)
        for tunable in tunables:
            setattr(made, tunable.name, tunable.default)
        made.__init__()  # type: ignore[misc]
        return made

    register_elevator(
        types.SimpleNamespace(
            name=name,
            version=version,
            headline=lines[0].rstrip("."),
            idea=" ".join(line.strip() for line in lines).strip(),
            tunables=[(t.name, t.unit, t.default, t.min, t.max, t.meaning, t.trade_off) for t in tunables],
            longest_wait_ns=elevator.longest_wait_ns,
            methods=methods,
            make=make,
        )
    )
    _registered[name] = (elevator, version)
    return name


def version_of(elevator: type[CustomElevator]) -> str:
    """The version of a class: the one that it states, or a digest of its code."""
    if elevator.version is not None:
        return str(elevator.version)
    digest = hashlib.sha256()
    for base in elevator.__mro__:
        if base is CustomElevator:
            break
        for key, value in sorted(vars(base).items()):
            if not key.startswith("__") or key == "__init__":
                digest.update(f"{key}={_described(value)};".encode())
    return f"code {digest.hexdigest()[:16]}"


def _described(value: Any) -> str:
    """A text that changes with the code or the value."""
    function = getattr(value, "__func__", value)
    code = function if isinstance(function, types.CodeType) else getattr(function, "__code__", None)
    if code is None:
        return repr(value)
    constants = ",".join(_described(constant) for constant in code.co_consts)
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _tunable(name: str, value: int | Tunable) -> Tunable:
    if isinstance(value, Tunable):
        return value if value.name == name else Tunable(**{**vars(value), "name": name})
    if not isinstance(value, int):
        raise UsageError(f"the tunable {name} is {value!r}: a whole number or a hoistway.Tunable would be right")
    return Tunable(name, "number", value, 0, 2**53, "", "")
