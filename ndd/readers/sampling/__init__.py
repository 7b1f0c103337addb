"""The order of the samples: shards, shuffling, epochs, and how ranks share out what is left of one."""
