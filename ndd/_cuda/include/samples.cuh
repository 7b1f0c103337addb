// The loops of every kernel over the samples of a batch; part of each text, so nobody includes it.
//
// A launch starts a grid of (blocks for one sample) x (samples, at most 65535). Both loops go round where there is more
// than the grid holds. `s.items` is the work that the launch was asked for: elements of output 0 unless it said otherwise.
#define KERNEL_NAME(name) extern "C" __global__ void name

// The samples that this block works on: `EACH_SAMPLE(s) { ... }` inside a kernel with the usual three parameters.
#define EACH_SAMPLE(s)                                              \
  for (int sample_number = blockIdx.y; sample_number < count; sample_number += gridDim.y) \
    if (const Sample& s = samples[sample_number]; true)

// The items of a sample that this thread works on: `EACH_ITEM(i, total) { ... }`.
#define EACH_ITEM(i, total)                                                                     \
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (long long)(total); \
       i += (long long)gridDim.x * blockDim.x)

// A kernel that computes item `i` of sample `s`: `PER_ITEM(flip) { s.out0[i] = ...; }`.
#define PER_ITEM(name)                                                                                         \
  static inline void name##_item(const Sample& s, const Shared& shared, const long long i);                   \
  KERNEL_NAME(name)                                                                                            \
  (const Sample* samples, int count, Shared shared) {                                                          \
    EACH_SAMPLE(s) EACH_ITEM(i, s.items) name##_item(s, shared, i);                                            \
  }                                                                                                            \
  static inline void name##_item(const Sample& s, const Shared& shared, const long long i)

// a / b, where `b` fits in 32 bits: a division in 64 bits costs several times as much as one in 32.
inline unsigned long long quotient(unsigned long long a, unsigned int b) {
  return a <= 0xffffffffull ? (unsigned int)a / b : a / b;
}
