"""What the tests share."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A shell starts programs in the background with SIGINT ignored; the tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def readers() -> str:
    """A job file of four readers, small enough for a test."""
    return "[readers]\nrw=read\nbs=64k\nsize=4m\nnumjobs=4\n"


@pytest.fixture
def job_file(tmp_path: Path, readers: str) -> Path:
    path = tmp_path / "readers.fio"
    path.write_text(readers)
    return path


def run_command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command of the package in a process of its own."""
    command = [sys.executable, "-m", "hoistway", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    files = [file for part in ("points", "jobs", "sweeps") for file in (folder / part).iterdir()]
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in files}
