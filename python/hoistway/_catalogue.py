"""The built-in drives and elevators, as mappings from name to description."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from hoistway._hoistway import Drive, UsageError, drive_names, elevator_list, elevator_name


@dataclasses.dataclass(frozen=True)
class Tunable:
    """A tunable of an elevator."""

    name: str
    unit: str
    """The unit of `default`, `min` and `max`: ms, requests, KiB, times, factor, 0/1, form."""
    default: int
    min: int
    max: int
    meaning: str
    trade_off: str


@dataclasses.dataclass(frozen=True)
class Elevator:
    """The description of an elevator."""

    name: str
    aliases: tuple[str, ...]
    kernel: str
    """The kernels whose decisions the elevator reproduces."""
    in_linux: str
    """The kernels that contained the elevator."""
    headline: str
    idea: str
    suits: str
    groups: bool
    """True if the elevator can divide the disk among control groups."""
    reservations: bool
    """True if processes can reserve bandwidth."""
    tunables: Mapping[str, Tunable]


class UnknownNameError(UsageError, KeyError):
    """There is no drive or elevator of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Drives(Mapping[str, Drive]):
    """The built-in drives; a name that ends in ``.toml`` is a drive file."""

    def __getitem__(self, name: str) -> Drive:
        try:
            return Drive.load(name)
        except UsageError as error:
            raise UnknownNameError(str(error)) from None

    def __contains__(self, name: object) -> bool:
        return name in drive_names()

    def __iter__(self) -> Iterator[str]:
        return iter(drive_names())

    def __len__(self) -> int:
        return len(drive_names())

    def __repr__(self) -> str:
        return f"<drives: {', '.join(self)}>"


class Elevators(Mapping[str, Elevator]):
    """All elevators by name; an alias is a name, too."""

    def __getitem__(self, name: str) -> Elevator:
        try:
            return _all_elevators()[elevator_name(name)]
        except UsageError as error:
            raise UnknownNameError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(_all_elevators())

    def __len__(self) -> int:
        return len(_all_elevators())

    def __repr__(self) -> str:
        return f"<elevators: {', '.join(self)}>"


@cache
def _all_elevators() -> dict[str, Elevator]:
    def read(row: dict[str, Any]) -> Elevator:
        tunables = {tunable["name"]: Tunable(**tunable) for tunable in row["tunables"]}
        return Elevator(**{**row, "aliases": tuple(row["aliases"]), "tunables": tunables})

    return {row["name"]: read(row) for row in elevator_list()["elevators"]}


drives = Drives()
elevators = Elevators()
