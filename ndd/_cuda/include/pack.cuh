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

// The first `size` elements at `source`.
template <int N, class T>
inline Pack<T, N> load(const T* source, int size) {
  if (size == N && packs_at<N>(source)) return *(const Pack<T, N>*)source;
  Pack<T, N> pack;
  for (int k = 0; k < size; k++) pack.element[k] = source[k];
  return pack;
}

// The first `size` elements of `pack` at `target`.
template <class T, int N>
inline void store(T* target, const Pack<T, N>& pack, int size) {
  if (size == N && packs_at<N>(target)) {
    *(Pack<T, N>*)target = pack;
  } else {
    for (int k = 0; k < size; k++) target[k] = pack.element[k];
  }
}

// A kernel that computes the items `first` to `first + size` of sample `s`, launched with `pack=`; size is PACK but at the end.
#define PER_PACK(name)                                                                                              \
  static inline void name##_pack(const Sample& s, const Shared& shared, const long long first, const int size);    \
  KERNEL_NAME(name)(const Sample* samples, int count, Shared shared) {                                              \
    EACH_SAMPLE(s) EACH_ITEM(i, (s.items + PACK - 1) / PACK)                                                        \
      name##_pack(s, shared, i * PACK, s.items - i * PACK < PACK ? int(s.items - i * PACK) : PACK);                 \
  }                                                                                                                 \
  static inline void name##_pack(const Sample& s, const Shared& shared, const long long first, const int size)

#endif
