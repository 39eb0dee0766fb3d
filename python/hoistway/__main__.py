"""The command ``hoistway``, which is part of the package."""

import os
import shutil
import sys

from hoistway._hoistway import run_command


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit code."""
    called = None if sys.argv[0].endswith(".py") else shutil.which(sys.argv[0])
    beside = shutil.which("hoistway", path=os.path.dirname(sys.executable))
    program = called or beside or shutil.which("hoistway") or sys.executable
    sys.stdout.flush()
    return run_command(["hoistway", *sys.argv[1:]], os.path.abspath(program))


if __name__ == "__main__":
    sys.exit(main())
