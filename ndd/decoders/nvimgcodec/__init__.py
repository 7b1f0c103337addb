"""nvImageCodec: its C interface, its decoders, and pictures that come out on a GPU."""
