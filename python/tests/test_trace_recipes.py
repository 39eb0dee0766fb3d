"""The recipes of docs/trace-parquet.md, word by word, beside `hoistway trace describe`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY, run_command

TRACES = {
    "one file after the other, merged bios, flushes": "crates/trace/testdata/blktrace/vda-mq-deadline",
    "two readers": "examples/two-readers/disk",
}


def recipes() -> dict[str, str]:
    """The Python blocks of the page, by their titles."""
    page = (REPOSITORY / "docs/trace-parquet.md").read_text()
    sections = re.findall(r"^### (\w+)$(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL)
    blocks = {title: re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for title, text in sections}
    return {title: found[0] for title, found in blocks.items() if found}


def described(trace: Path) -> dict[str, float]:
    """The figures of the recipes, as the command prints them."""
    ran = run_command("trace", "describe", str(trace), "--json")
    assert ran.returncode == 0, ran.stderr
    whole = json.loads(ran.stdout)
    d2c = whole["all"]["phases"]["d2c_ns"]
    figures = {key: sum(device[key] for device in whole["devices"]) for key in ("requests", "read_bytes", "write_bytes")}
    figures |= {f"d2c_{key}": d2c[key] for key in ("count", "mean", "max", "p50", "p99")}
    figures["depth_at_q"] = whole["depth"]["under_way_at_q"]["mean"]
    figures["depth_at_d"] = whole["depth"]["in_device_at_d"]["mean"]
    return figures


def test_the_page_has_the_recipes_that_are_tested() -> None:
    assert list(recipes()) == ["DuckDB", "Polars", "Dask"]


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())
@pytest.mark.parametrize("title", ["DuckDB", "Polars", "Dask"])
def test_a_recipe_computes_the_figures_of_describe(title: str, trace: str, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    ran = run_command(
        "trace", "convert", str(REPOSITORY / trace), "--to", "parquet", "-o", str(folder), "--file-events", "1500"
    )
    assert ran.returncode == 0, ran.stderr
    assert len(list(folder.iterdir())) >= 3
    names: dict[str, Any] = {"folder": str(folder)}
    exec(recipes()[title], names)
    expected = described(REPOSITORY / trace)
    assert expected["requests"] > 700 and expected["d2c_count"] >= expected["requests"]
    assert set(names["figures"]) == set(expected)
    for name, value in names["figures"].items():
        # Percentiles of `describe` are exact within 0.1 %, those of the recipe for Dask as well.
        tolerance = 2e-3 if name in ("d2c_p50", "d2c_p99") else 1e-9
        assert float(value) == pytest.approx(expected[name], rel=tolerance), name


REWRITERS = {
    "pyarrow, pages of version 2, gzip": """
import pyarrow.parquet as pq
pq.write_table(pq.read_table(folder), f"{folder}.parquet", compression="gzip", data_page_version="2.0")
""",
    "pyarrow, other encodings, lz4": """
import pyarrow.parquet as pq
encodings = {"time_ns": "BYTE_STREAM_SPLIT", "action": "DELTA_BYTE_ARRAY", "rwbs": "DELTA_LENGTH_BYTE_ARRAY"}
table = pq.read_table(folder)
pq.write_table(table, f"{folder}.parquet", compression="lz4", use_dictionary=False, column_encoding=encodings)
""",
    "Polars": """
import polars as pl
pl.scan_parquet(f"{folder}/*.parquet").sink_parquet(f"{folder}.parquet")
""",
    "DuckDB, snappy": """
import duckdb
duckdb.sql(f"COPY (FROM read_parquet('{folder}/*.parquet')) TO '{folder}.parquet' (PARQUET_VERSION v2)")
""",
}


@pytest.mark.parametrize("rewrite", REWRITERS.values(), ids=REWRITERS.keys())
def test_files_of_other_programs_describe_as_the_trace(rewrite: str, tmp_path: Path) -> None:
    trace, folder = REPOSITORY / TRACES["two readers"], tmp_path / "set"
    ran = run_command("trace", "convert", str(trace), "--to", "parquet", "-o", str(folder), "--file-events", "1500")
    assert ran.returncode == 0, ran.stderr
    exec(rewrite, {"folder": str(folder)})
    assert described(Path(f"{folder}.parquet")) == described(trace)


def test_brotli_is_refused_with_what_would_be_right(tmp_path: Path) -> None:
    folder, brotli = tmp_path / "set", tmp_path / "brotli.parquet"
    trace = str(REPOSITORY / TRACES["two readers"])
    assert run_command("trace", "convert", trace, "--to", "parquet", "-o", str(folder)).returncode == 0
    exec(
        "import pyarrow.parquet as pq\npq.write_table(pq.read_table(folder), brotli, compression='brotli')",
        {"folder": str(folder), "brotli": str(brotli)},
    )
    ran = run_command("trace", "describe", str(brotli))
    assert ran.returncode == 1
    assert "brotli.parquet: its column `time_ns` is compressed with Brotli" in ran.stderr
    assert "zstd, snappy, gzip, lz4 or none would be right" in ran.stderr
