"""Block traces: opening, describing, and their requests as Arrow streams."""

import os
from collections.abc import Iterator
from typing import Any, Protocol

from hoistway import _hoistway
from hoistway._hoistway import Table

__all__ = ["Requests", "Stream", "Trace", "open"]


class Stream(Protocol):
    """An object with bytes to read: a file that is open in binary mode, `io.BytesIO`, a response."""

    def read(self, size: int, /) -> bytes: ...


class Requests:
    """The requests of a trace, read once: chunk by chunk, or by a library that reads Arrow streams.

    Columns: ``device``, ``op`` (read, write, discard, flush, other), ``sync``, ``sector``, ``bytes``,
    ``pid``, ``bios`` (with merged ones), the times ``queued_ns``, ``got_ns``, ``inserted_ns``,
    ``issued_ns`` and ``completed_ns`` (null for a step that the trace does not show), ``q2c_ns`` from
    submission to completion, ``d2c_ns`` in the device, ``requeues`` and ``error``.
    """

    def __init__(self, native: _hoistway.Requests) -> None:
        self._native = native

    def __iter__(self) -> Iterator[Table]:
        return iter(self._native)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)


class Trace:
    """A trace in one or several files. Each use reads the files anew, so memory stays small.

    A trace with a stream can be used once.
    """

    def __init__(self, native: _hoistway.Trace) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """The name of the trace: that of its folder of Parquet files, or of its first file without
        the suffix of blktrace."""
        return self._native.name

    @property
    def files(self) -> list[str]:
        """The files; empty for streams and samples."""
        return [os.fspath(file) for file in self._native.files]

    def requests(self, chunk: int = 65_536) -> Requests:
        """Starts to read the requests, in chunks of at most so many rows."""
        return Requests(self._native.requests(chunk))

    def describe(self) -> dict[str, Any]:
        """The figures of the trace: the document of ``hoistway trace describe --json``."""
        return self._native.describe()

    def __repr__(self) -> str:
        return repr(self._native)


def open(
    *names: str | os.PathLike[str] | Stream,
    format: str | None = None,
    time_unit: str | None = None,
    sector_bytes: int | None = None,
    columns: str | None = None,
) -> Trace:
    """Opens a trace of any format that ``hoistway trace`` reads.

    Args:
        *names: files, folders of Parquet files, glob patterns, the argument of ``blktrace -o``, ``"-"``
            for standard input, ``"sample:two-readers"``, or objects with a method `read` that returns
            bytes; gzip, zstd and xz are decompressed.
        format: the format, if detection fails.
        time_unit: the unit of the times (ps, ns, 100ns, us, ms, s), if the format defines none.
        sector_bytes: the size of a sector, if the format defines none.
        columns: the columns of a table of any other format, as `hoistway trace --columns` takes them, such as
            ``"time=2:s,op=3:hex,size=4:bytes,offset=5:sectors"``.

    Raises:
        UsageError: an argument is wrong.
        HoistwayError: a file cannot be read, or has no known format.
    """
    parts = [name if hasattr(name, "read") else os.fspath(name) for name in names]
    return Trace(_hoistway.Trace(parts, format, time_unit, sector_bytes, columns))
