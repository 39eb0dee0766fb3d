"""Pages of results: as files, and in notebooks."""

import html
import os


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Writes a self-contained HTML document."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def frame(page: str) -> str:
    """A document in a frame of its own, as a notebook shows it."""
    return f'<iframe srcdoc="{html.escape(page, quote=True)}" style="width: 100%; height: 48em; border: 0"></iframe>'
