"""Tries tests that failed once more, alone, and names those that pass only then: `again.py ARGUMENTS OF PYTEST`."""

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")  # of the last run; errors while collecting are files in it
MOST = 10  # more than chance lets fail


def failed() -> list[str]:
    """The tests that failed in the last run."""
    return sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []


def main() -> int:
    """0 if all that failed pass now."""
    first = failed()
    if not 1 <= len(first) <= MOST:
        print(f"== {len(first)} failures are not tried again")
        return 1
    print(f"== {len(first)} failed; once more, alone")
    again = subprocess.run([sys.executable, "-m", "pytest", "--quiet", "--last-failed", *sys.argv[1:]]).returncode
    still = failed() if again else []
    for test in first:
        print(f"FAILED TWICE: {test}" if test in still else f"UNSTEADY, passed at the second try: {test}")
    return again


if __name__ == "__main__":
    sys.exit(main())
