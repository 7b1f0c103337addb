"""Prints, as constraints for pip, the oldest release of each dependency that `pyproject.toml` allows."""

import re
from pathlib import Path

text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
for name, version in sorted(set(re.findall(r'"([A-Za-z0-9_.-]+)(?:\[[^"\]]*\])?>=([0-9.]+)', text))):
    if name != "setuptools":
        parts = [*version.split("."), "0"][: max(2, version.count(".") + 1)]
        print(f"{name}=={'.'.join(parts)}{'.*' if len(parts) == 2 else ''}")
