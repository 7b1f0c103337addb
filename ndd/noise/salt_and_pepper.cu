// One thread an element; its pixel's word decides. The extents are [outer, channels, inner].
#include "philox.cuh"

PER_ITEM(salt_and_pepper) {
  const long long channels = s.extents[1], inner = s.extents[2];
  Words words(s.stream, i / (channels * inner) * inner + i % inner);
  const unsigned long long word = words.next();
  s.out0[i] = word < s.salted ? s.salt : word < s.changed ? s.pepper : s.in0[i];
}
