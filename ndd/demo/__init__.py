"""`python -m ndd demo`: a small classifier trained on a folder of photographs, through the loop of the README."""
