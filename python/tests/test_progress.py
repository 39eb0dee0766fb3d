"""Progress bars: on terminals, not in files and pipes. `test_notebooks.py` has that of notebooks."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

# A bar appears after a second.
BAR = """
import time
from hoistway._progress import bar
with bar(1000, "points") as shown:
    time.sleep(1.2)
    shown.update(500)
"""
COMMAND = [sys.executable, "-c", BAR]


def test_a_pipe_gets_no_bar() -> None:
    pytest.importorskip("tqdm")
    ran = subprocess.run(COMMAND, capture_output=True, timeout=120, check=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")


def test_a_terminal_gets_a_bar() -> None:
    pytest.importorskip("tqdm")
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = b""
    with subprocess.Popen(COMMAND, stderr=end) as process:
        os.close(end)
        # The end of a terminal is an error.
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 4096):
                shown += part
    os.close(terminal)
    assert process.returncode == 0
    assert b"points |" in shown and b"50%" in shown
