"""The notebooks of the examples, run by Jupyter, and Ctrl-C in a notebook."""

import html
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hoistway as hw
from conftest import REPOSITORY

FOLDER = REPOSITORY / "examples/notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SWEEP_CHARTS = ["Throughput against latency", "Main effects"]
# What the pages in the cells of each notebook have, word by word.
PAGES = {
    "a-sweep-on-dask": SWEEP_CHARTS,
    "a-trace-of-your-own": ["cfq-v3", "deadline"],
    "competing-readers": ["anticipatory", "cfq-v3"],
    "tuning-slice-idle": [*SWEEP_CHARTS, "cfq-v3.slice_idle"],
    "write-your-own-elevator": ["slices", "noop"],
}


def read(notebook: str) -> Any:
    nbformat = pytest.importorskip("nbformat")
    return nbformat.read(FOLDER / f"{notebook}.ipynb", as_version=4)


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_is_stored_without_outputs(notebook: str) -> None:
    for cell in read(notebook).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None, cell.source


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_in_jupyter_and_shows_its_pages(notebook: str) -> None:
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    at = {"metadata": {"path": str(FOLDER)}}
    ran = nbclient.NotebookClient(read(notebook), timeout=300, kernel_name="python3", resources=at).execute()
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    pages = [html.unescape(frame) for frame in shown if frame.startswith("<iframe")]
    assert pages and [text for text in PAGES[notebook] if text not in pages[-1]] == []
    if SWEEP_CHARTS[0] in PAGES[notebook]:
        # A picture for wide and one for narrow windows: two heat maps, two effects of each key.
        assert len(re.findall(r"<svg\b", pages[-1])) >= 12


class Kernel:
    """A kernel of Jupyter, cell by cell."""

    def __init__(self) -> None:
        manager = pytest.importorskip("jupyter_client.manager")
        pytest.importorskip("ipykernel")
        self.manager, self.client = manager.start_new_kernel(kernel_name="python3")

    def run(self, code: str, on_output: Callable[[dict[str, Any]], None] = lambda _: None) -> dict[str, Any]:
        """Runs a cell; returns the end of it."""

        def take(message: dict[str, Any]) -> None:
            if message["msg_type"] in ("stream", "display_data", "execute_result", "error"):
                on_output(message["content"])

        reply = self.client.execute_interactive(code, timeout=120, store_history=False, output_hook=take)
        content: dict[str, Any] = reply["content"]
        return content

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.stop()


SLOW_SWEEP = """
import hoistway as hw
spec = {
    "jobs": [{"name": "readers", "text": "[readers]\\nrw=randread\\nbs=4k\\nsize=64m\\nnumjobs=4\\n"}],
    "drives": ["sata-7200-2006"], "elevators": ["deadline"], "seeds": "1-12", "points_per_file": 1,
}
"""


def press_when(kernel: Kernel, has_begun: Callable[[], bool]) -> None:
    """Interrupts the kernel, as the button of a notebook does, once something has begun."""
    deadline = time.monotonic() + 60
    while not has_begun() and time.monotonic() < deadline:
        time.sleep(0.01)
    kernel.manager.interrupt_kernel()


def test_an_interrupted_sweep_keeps_its_points_and_the_cell_goes_on(kernel: Kernel, tmp_path: Path) -> None:
    import threading

    points = tmp_path / "results/points"
    assert kernel.run(SLOW_SWEEP)["status"] == "ok"
    cell = f"result = hw.sweep(spec, {str(tmp_path / 'results')!r}, threads=1)"
    thread = threading.Thread(target=press_when, args=(kernel, lambda: any(points.glob("*.parquet"))))
    thread.start()
    ended = kernel.run(cell)
    thread.join()
    assert (ended["status"], ended.get("ename")) == ("error", "KeyboardInterrupt")
    kept = {path.name: path.read_bytes() for path in points.glob("*.parquet")}
    assert 1 <= len(kept) < 12
    printed: list[str] = []
    again = kernel.run(f"{cell}\nprint(result.simulated)", lambda output: printed.append(output.get("text", "")))
    assert again["status"] == "ok", again
    assert "".join(printed).strip() == str(12 - len(kept))
    files = {path.name: path.read_bytes() for path in points.glob("*.parquet")}
    assert len(files) == 12 and kept.items() <= files.items()


def test_an_interrupted_comparison_shows_a_bar_and_leaves_the_kernel_usable(kernel: Kernel) -> None:
    pytest.importorskip("ipywidgets")
    mime = "application/vnd.jupyter.widget-view+json"
    bars: list[str] = []

    def press(output: dict[str, Any]) -> None:
        if mime in output.get("data", {}):
            bars.append(output["data"][mime]["model_id"])
            # Once: a second interrupt could end the next cell.
            if len(bars) == 1:
                kernel.manager.interrupt_kernel()

    long = "[readers]\\nrw=randread\\nbs=4k\\nsize=4g\\nnumjobs=8\\ntime_based\\nruntime=10h\\n"
    comparison = "hw.compare(hw.JobFile('{}'), drive='sata-7200-2006', elevators=['deadline'])"
    ended = kernel.run(f"import hoistway as hw\n{comparison.format(long)}", press)
    assert (ended["status"], ended.get("ename")) == ("error", "KeyboardInterrupt")
    # tqdm displays its bar again if the interrupt arrives before it has noted the first display.
    assert len(set(bars)) == 1
    short = "[readers]\\nrw=read\\nbs=64k\\nsize=1m\\n"
    assert kernel.run(f"assert {comparison.format(short)}.table")["status"] == "ok"
    assert hw.__version__
