// LZ4 blocks to bytes: a warp takes a block. All of its threads read the tokens; they share the copying.
// A copy whose source runs into itself repeats the last `back` bytes.

static inline long long length_of(const unsigned char* source, long long size, long long& at, long long length) {
  if (length == 15) {
    unsigned char more = 255;
    while (more == 255) {
      if (at >= size) return -1;
      more = source[at++];
      length += more;
    }
  }
  return length;
}

// How many bytes came out; -1 for a block that is damaged, or gives more than `room`.
static inline long long inflate_block(const unsigned char* source, long long size, unsigned char* out, long long room,
                                      int lane) {
  long long at = 0, end = 0;
  while (at < size) {
    const int token = source[at++];
    long long n = length_of(source, size, at, token >> 4);
    if (n < 0 || n > size - at || n > room - end) return -1;
    for (long long i = lane; i < n; i += 32) out[end + i] = source[at + i];
    at += n;
    end += n;
    __syncwarp();
    if (at == size) return end;
    if (at + 2 > size) return -1;
    const long long back = source[at] | source[at + 1] << 8;
    at += 2;
    n = length_of(source, size, at, token & 15);
    if (n < 0 || back == 0 || back > end || n > room - end - 4) return -1;
    n += 4;
    for (long long i = lane; i < n; i += 32) out[end + i] = out[end - back + i % back];
    end += n;
    __syncwarp();
  }
  return -1;
}

KERNEL_NAME(inflate)(const Sample* samples, int count, Shared shared) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  EACH_SAMPLE(s) {
    const long long* begins = (const long long*)s.begins + s.first;
    const long long* sizes = (const long long*)s.sizes + s.first;
    for (long long k = blockIdx.x * (long long)warps + threadIdx.x / 32; k < s.chunks; k += gridDim.x * (long long)warps) {
      unsigned char* out = (unsigned char*)s.out0 + k * s.room;
      const long long made = inflate_block((const unsigned char*)s.in0 + begins[k], sizes[k], out, s.room, lane);
      for (long long i = (made < 0 ? 0 : made) + lane; i < s.room; i += 32) out[i] = 0;
      if (lane == 0) ((long long*)s.made)[k] = made;
    }
  }
}
