"""Sound: decoders of WAV, FLAC, Ogg and MPEG files, for one file and for a batch.

`decode.py` is the entry point. `ndd.decoders` describes the life of a recording.
"""
