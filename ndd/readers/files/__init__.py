"""Files as readers use them: found by folder, pattern or list, read at any offset; and indexes kept on disk."""
