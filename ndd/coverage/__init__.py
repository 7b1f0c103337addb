"""The `coverage` command: DALI's public names beside ndd's, and the index of the operators."""
