"""docs/write-an-elevator.md, word by word: its programs run one after the other, and each prints what
the page shows."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/write-an-elevator.md"


def steps() -> list[tuple[str, str | None]]:
    """The programs of the page, with the output that follows each."""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found: list[tuple[str, str | None]] = []
    for kind, text in blocks:
        if kind == "python":
            found.append((text, None))
        else:
            program, shown = found.pop()
            assert shown is None, "one output for each program"
            found.append((program, text))
    return found


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "tutorial"}
    found = steps()
    assert len(found) == 9 and sum(shown is not None for _, shown in found) == 8
    for program, shown in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, str(PAGE), "exec"), names)
        assert printed.getvalue() == (shown or ""), program
