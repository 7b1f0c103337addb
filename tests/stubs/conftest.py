"""The files of users' code are for the type checker: they are not imported."""

collect_ignore = ["right_code.py", "wrong_code.py"]
