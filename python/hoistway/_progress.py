"""Progress bars of tqdm: in notebooks and on terminals, and nowhere else."""

import sys
import warnings
from typing import Any


class _NoBar:
    def update(self, _: int) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> "_NoBar":
        return self

    def __exit__(self, *_: object) -> None: ...


def bar(total: int, what: str, progress: bool = True) -> Any:
    """A bar that appears after a second and disappears at its end.

    It is silent if tqdm is not installed, and outside of notebooks if standard error is no terminal.
    """
    in_notebook = _in_notebook()
    if not progress or not (in_notebook or (sys.stderr is not None and sys.stderr.isatty())):
        return _NoBar()
    try:
        with warnings.catch_warnings():
            # Without ipywidgets the bar is a line of text, which needs no warning.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return _NoBar()
    # The bar counts points or thousandths, of which only the share is shown.
    shown = "{desc} |{bar}| {percentage:3.0f}% [{elapsed}<{remaining}]"
    return tqdm(total=total, desc=what, delay=1, leave=False, bar_format=shown)


def _in_notebook() -> bool:
    """Returns true in a kernel of Jupyter."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
