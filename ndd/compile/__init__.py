"""`python -m ndd compile`: kernels compiled before they are needed."""
