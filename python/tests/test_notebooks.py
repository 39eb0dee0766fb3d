"""The notebooks of the examples, cell by cell."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "examples/notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: str(notebook.stem))
def test_the_cells_of_a_notebook_run(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("distributed")
    monkeypatch.setenv("HOISTWAY_EXAMPLES", str(REPOSITORY / "examples"))
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(code_cells(notebook)):
        exec(compile(cell, f"{notebook.name}, code cell {number}", "exec"), names)
    shown = names.get("comparison")
    if shown is not None:
        assert shown._repr_html_().startswith("<iframe")


@pytest.mark.cluster
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: str(notebook.stem))
def test_a_notebook_runs_in_jupyter(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("HOISTWAY_EXAMPLES", str(REPOSITORY / "examples"))
    ran = nbclient.NotebookClient(nbformat.read(notebook, as_version=4), timeout=300).execute()
    shown = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in shown) or shown
