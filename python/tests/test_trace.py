"""Traces, predictions, advice and published results."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import hoistway as hw
from conftest import REPOSITORY, run_command

SAMPLE = REPOSITORY / "examples/two-readers/disk.blktrace.0.xz"


def test_requests_are_read_in_chunks_or_as_a_stream() -> None:
    polars = pytest.importorskip("polars")
    trace = hw.trace.open(SAMPLE)
    chunks = list(trace.requests(chunk=100))
    assert [len(chunk) for chunk in chunks] == [100] * 7 + [43]
    table = polars.DataFrame(trace.requests())
    assert table["sector"].to_list() == [sector for chunk in chunks for sector in chunk["sector"]]
    assert (table["q2c_ns"] == table["completed_ns"] - table["queued_ns"]).all()
    assert set(table["op"]) <= {"read", "write"}
    requests = trace.requests()
    assert len(list(requests)) == 1 and list(requests) == []
    with pytest.raises(hw.UsageError, match="read already"):
        polars.DataFrame(requests)


def test_describe_is_the_document_of_the_command() -> None:
    printed = json.loads(run_command("trace", "describe", str(SAMPLE), "--json").stdout)
    ours = hw.trace.open(SAMPLE).describe()
    assert ours["all"]["requests"] == 743
    assert json.dumps(ours["all"]) in json.dumps(printed)


def test_traces_that_cannot_be_read_have_the_text_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "no.trace"
    path.write_text("this is no trace\n")
    for name in (path, tmp_path / "none"):
        with pytest.raises(hw.HoistwayError) as raised:
            hw.trace.open(name)
        assert str(raised.value) in run_command("trace", "info", str(name)).stderr
    with pytest.raises(hw.UsageError, match="unknown format"):
        hw.trace.open(path, format="blktrac")


def test_a_trace_has_the_names_of_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    assert run_command("trace", "convert", str(SAMPLE), "--to", "parquet", "-o", str(folder)).returncode == 0
    names = {"sample:two-readers": "two-readers", str(SAMPLE): "disk", str(folder): "set"}
    for argument, name in names.items():
        trace = hw.trace.open(argument)
        assert trace.name == name
        printed = run_command("trace", "describe", argument).stdout
        assert printed.startswith(f"{name}: 743 requests")
        # Each use reads the trace anew.
        assert trace.describe()["all"]["requests"] == trace.describe()["all"]["requests"] == 743
    assert hw.trace.open("sample:two-readers").files == []
    with pytest.raises(hw.UsageError) as raised:
        hw.trace.open("sample:two-writers")
    assert str(raised.value) in run_command("trace", "info", "sample:two-writers").stderr
    with pytest.raises(hw.UsageError, match="only once"):
        hw.trace.open("-", "-")


def test_a_stream_is_read_once() -> None:
    with SAMPLE.open("rb") as file:
        trace = hw.trace.open(file)
        assert (trace.name, trace.files) == ("disk", [])
        assert sum(len(chunk) for chunk in trace.requests()) == 743
        with pytest.raises(hw.UsageError, match="is a stream, which was read already"):
            trace.describe()
    trace = hw.trace.open(io.BytesIO(SAMPLE.read_bytes()))
    assert trace.describe()["all"]["requests"] == 743


def test_standard_input_is_a_trace() -> None:
    code = "import hoistway as hw; t = hw.trace.open('-'); print(t.name, t.describe()['all']['requests'])"
    with SAMPLE.open("rb") as file:
        ran = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["-", "743"]


def test_streams_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(hw.HoistwayError, match=r"the stream: .*Input/output error"):
        hw.trace.open(Broken())
    path = tmp_path / "text.csv"
    path.write_text("128166372003061629,hm,1,Read,383496192,32768,413\n")
    with path.open() as file, pytest.raises(hw.HoistwayError, match=r"text\.csv: .*returns <class 'str'>: bytes"):
        hw.trace.open(file)  # type: ignore[arg-type]


def test_a_prediction_is_that_of_the_command() -> None:
    arguments = ["--elevators", "noop,deadline", "--drive", "sata-7200-2006"]
    printed = run_command("trace", "whatif", str(SAMPLE), *arguments, "--json")
    trace = hw.trace.open(SAMPLE)
    prediction = hw.whatif(trace, elevators=["noop", "deadline"], drive="sata-7200-2006")
    ours = prediction.to_dict()
    ours.pop("trace", None)
    theirs = json.loads(printed.stdout)
    theirs.pop("trace", None)
    assert ours == theirs
    if prediction.holds:
        assert prediction.table["elevator"] == ["noop", "deadline"]
        assert "<html" in prediction._repr_html_() or "&lt;html" in prediction._repr_html_()


def test_advice_names_a_scheduler_and_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "mine.fio"
    path.write_text("[reader]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=40\nnumjobs=2\ndirect=1\n")
    objective = "p99(reader) min"
    advice = hw.advise(job=path, drive="ssd-sata-consumer", objective=objective, seeds=2)
    arguments = ["--job", str(path), "--drive", "ssd-sata-consumer", "--objective", objective, "--seeds", "2"]
    printed = run_command("advise", *arguments, "--json")
    assert advice.to_dict() == json.loads(printed.stdout), printed.stderr
    assert advice.scheduler and advice.because
    advice.page(tmp_path / "advice.html")
    assert "<html" in (tmp_path / "advice.html").read_text()
    with pytest.raises(hw.UsageError, match="one workload"):
        hw.advise(drive="ssd-sata-consumer")
    with pytest.raises(hw.UsageError, match="there is no use `dekstop`"):
        hw.advise(use="dekstop", drive="ssd-sata-consumer")


def test_an_unknown_published_result_is_refused() -> None:
    with pytest.raises(hw.UsageError) as raised:
        hw.reproduce("S9-99")
    assert str(raised.value) in run_command("reproduce", "S9-99").stderr
