// Elements that a thread writes next to each other: one wide store where the address allows it.
#ifndef NDD_PACK_CUH
#define NDD_PACK_CUH

template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T element[N];
};

// Whether packs of N elements may be read and written at `p`.
template <int N, class T>
inline bool packs_at(const T* p) {
  return (unsigned long long)p % alignof(Pack<T, N>) == 0;
}

// The first `made` elements of `pack` at `target`.
template <class T, int N>
inline void store(T* target, const Pack<T, N>& pack, int made) {
  if (made == N && packs_at<N>(target)) {
    *(Pack<T, N>*)target = pack;
  } else {
    for (int k = 0; k < made; k++) target[k] = pack.element[k];
  }
}

#endif
