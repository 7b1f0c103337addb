"""The order of the samples: shards, shuffling, epochs, and how ranks divide the rest of one."""
