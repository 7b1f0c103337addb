// What the threads of a block find out together.
#ifndef NDD_BLOCK_CUH
#define NDD_BLOCK_CUH

// The values of all 256 threads, joined two by two; every thread gets the result. All threads of the block must call it.
template <class T, class Join>
inline T joined_in_block(T value, Join join) {
  __shared__ T values[256];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) values[threadIdx.x] = join(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = values[0];
  __syncthreads();
  return result;
}

template <class T>
inline T largest_in_block(T value) {
  return joined_in_block(value, [](T a, T b) { return a < b ? b : a; });
}

#endif
