// One thread an element of the result: the item that its draw chooses, uniformly or by cumulative probabilities,
// or that was chosen before.
#include "philox.cuh"

PER_ITEM(pick) {
  const OUT0* table = (const OUT0*)s.table;
  const double* cumulative = (const double*)s.cumulative;
  const long long draw = i / s.item;
  Words words(s.stream, draw);
  long long index;
  if (s.chosen) {
    index = ((const long long*)s.chosen)[draw];
  } else if (cumulative) {
    const double word = double(words.next64()) * 5.421010862427522e-20;
    long long low = 0, high = (long long)s.limit - 1;
    while (low < high) {
      const long long middle = (low + high) >> 1;
      if (cumulative[middle] < word)
        low = middle + 1;
      else
        high = middle;
    }
    index = low;
  } else {
    index = (long long)words.below(s.limit);
  }
  s.out0[i] = table ? table[index * shared.widest + i % s.item] : convert<OUT0>(index);
}
