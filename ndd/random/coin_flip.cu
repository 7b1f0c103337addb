// One thread an element: 1 where its word is below the threshold.
#include "philox.cuh"

PER_ITEM(coin_flip) {
  Words words(s.stream, i);
  s.out0[i] = OUT0((unsigned long long)words.next() < s.threshold);
}
