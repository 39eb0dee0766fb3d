"""Job files of fio as objects whose options can be changed."""

import os
from collections.abc import Mapping
from typing import TypeAlias, Union

from hoistway import _hoistway

Value: TypeAlias = Union[str, int, float, bool, None]
"""The value of an option; `None` makes it a flag without a value."""

JobLike: TypeAlias = Union["JobFile", str, "os.PathLike[str]"]
"""A job file, or the path of one."""


class JobFile:
    """A job file of fio: sections with options. Objects do not change; `replace` makes a copy.

    Args:
        text: the text of the job file. Included files are read by `JobFile.load` only.
        name: the name of the file in errors and results.

    Raises:
        HoistwayError: every mistake of the text, with file, line and column.
    """

    __slots__ = ("_native",)

    def __init__(self, text: str, name: str = "job.fio") -> None:
        self._native = _hoistway.JobFile(text, name)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "JobFile":
        """Reads a job file with the files that it includes and the variables of the environment."""
        return JobFile._of(_hoistway.JobFile.load(path))

    @staticmethod
    def _of(native: _hoistway.JobFile) -> "JobFile":
        job = object.__new__(JobFile)
        job._native = native
        return job

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._native.name

    @property
    def sections(self) -> list[str]:
        """The names of the sections, `global` included, in the order of the file."""
        return self._native.sections

    def __getitem__(self, section: str) -> dict[str, str | None]:
        """The options of a section as they are written; a flag has the value `None`."""
        if section not in self.sections:
            raise KeyError(section)
        return dict(self._native.options(section))

    def replace(self, changes: Mapping[str, Value] | None = None, /, **options: Value) -> "JobFile":
        """Returns a copy with other values of options.

        Args:
            changes: values by ``SECTION.OPTION``, for example ``{"readers.numjobs": 16}``.
            **options: options of the section `global`, for example ``bs="64k"``.

        Raises:
            UsageError: there is no such section or option.
            HoistwayError: a value is wrong.
        """
        rows = []
        for key, value in {**(changes or {}), **options}.items():
            section, _, option = key.rpartition(".")
            text = str(int(value)) if isinstance(value, bool) else None if value is None else str(value)
            rows.append((section or "global", option, text))
        return JobFile._of(self._native.with_options(rows))

    def without(self, section: str, option: str) -> "JobFile":
        """Returns a copy in which a section lacks an option."""
        return JobFile._of(self._native.without_option(section, option))

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return repr(self._native)

    def __reduce__(self) -> tuple[type["JobFile"], tuple[str, str]]:
        return JobFile, (str(self), self.name)


def native_job(job: JobLike) -> _hoistway.JobFile:
    """The job file of an argument: an object, or a path."""
    return job._native if isinstance(job, JobFile) else _hoistway.JobFile.load(job)
