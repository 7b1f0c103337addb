"""Video: containers, packets, frames, colours, and NVIDIA's video engines.

`video.py` is the operator, which `ndd.decoders.video` names: import from the modules of this package, not the package itself.
`ndd.decoders` describes the life of a clip.
"""
