"""JPEG on the CPU: headers, segments, and the decoder of baseline pictures and windows of them."""
