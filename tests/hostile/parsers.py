"""All parsers whose files are read under bounds checks: one process for them imports once, and compiles once what they share."""

from hostile import annotations, containers, fits, shards

PARSERS = {**containers.PARSERS, **fits.PARSERS, **annotations.PARSERS, **shards.PARSERS}
