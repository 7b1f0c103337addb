"""What the headers of picture files and of .npy files say, read without decoding."""
