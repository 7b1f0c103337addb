"""`python -m ndd bench`: times beside DALI's, both measured in turn in one run."""
