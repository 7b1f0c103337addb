"""Video: containers, packets, frames, colours, and NVIDIA's video engines.

The folder is not called `video`, for `ndd.decoders.video` is the operator. `ndd.decoders` describes the life of a clip.
"""
