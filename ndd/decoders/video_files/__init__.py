"""Video: containers, packets, frames, colors, and NVIDIA's hardware decoder."""
