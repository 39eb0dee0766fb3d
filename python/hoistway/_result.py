"""What the results of comparisons and predictions have in common."""

import logging
import os
from typing import TYPE_CHECKING, Any, Protocol

from hoistway._hoistway import Table
from hoistway._page import frame, write_page

if TYPE_CHECKING:
    import pandas
    import polars

logger = logging.getLogger("hoistway")


class Native(Protocol):
    """The part of a result that the extension module has."""

    @property
    def table(self) -> Table: ...
    @property
    def verdict(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def html(self) -> str: ...


class Result:
    """A result with a table, a verdict, a document and a page."""

    def __init__(self, native: Native) -> None:
        self._result = native
        for note in native.notes:
            logger.info("%s", note)

    @property
    def table(self) -> Table:
        """The figures, a row for each elevator (and seed). Dataframe libraries take it as it is."""
        return self._result.table

    @property
    def verdict(self) -> str:
        """The answer in a few sentences."""
        return self._result.verdict

    @property
    def notes(self) -> list[str]:
        """What was not simulated, and what failed; also logged to the logger `hoistway`."""
        return self._result.notes

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with ``--json``."""
        return self._result.to_dict()

    def to_polars(self) -> "polars.DataFrame":
        """The table as a dataframe of polars."""
        return self.table.to_polars()

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a dataframe of pandas."""
        return self.table.to_pandas()

    def page(self, path: str | os.PathLike[str]) -> None:
        """Writes the page with charts: one self-contained HTML file."""
        write_page(path, self._result.html())

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks."""
        return frame(self._result.html())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"{self._result!r}: {self.verdict}"
