"""Sound: what reads WAV, FLAC, Ogg and MPEG files, one file or a batch."""
