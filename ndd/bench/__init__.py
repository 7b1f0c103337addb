"""`python -m ndd bench`: times of ndd and DALI, measured in turn in one run."""
