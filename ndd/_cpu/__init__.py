"""CPU kernels that two families of operators share, and the only importer of OpenCV."""
