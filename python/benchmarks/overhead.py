"""CPU seconds of a simulation of 10^6 requests: the command against the package, in pairs.

Usage: overhead.py COMMAND PAIRS, for example overhead.py "python -m hoistway" 5. Processes are
measured from start to end, imports included.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = """[a]
rw=randread
bs=4k
size=2g
number_ios=62500
numjobs=16
direct=1
ioengine=libaio
iodepth=1
"""
PROGRAM = """
import sys

import hoistway as hw

comparison = hw.compare(sys.argv[1], drive="ssd-sata-consumer", elevators=["mq-deadline"])
comparison.to_dict()
comparison.table
"""


def cpu_seconds(command: list[str]) -> float:
    """Runs a command and returns its CPU time, that of the system included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints the seconds of each pair, and the median of their ratios."""
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.fio"
        job.write_text(JOB)
        options = ["--drive", "ssd-sata-consumer", "--elevators", "mq-deadline", "--json"]
        command = [*sys.argv[1].split(), "compare", str(job), *options]
        python = [sys.executable, "-c", PROGRAM, str(job)]
        for pair in range(int(sys.argv[2])):
            order = [command, python] if pair % 2 == 0 else [python, command]
            seconds = {len(one): cpu_seconds(one) for one in order}
            of_command, of_python = seconds[len(command)], seconds[len(python)]
            ratios.append(of_python / of_command)
            print(f"command {of_command:.2f} s, Python {of_python:.2f} s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
