"""Writers of picture files, chunk by chunk and tag by tag: kinds that Pillow and OpenCV read but do not write."""
