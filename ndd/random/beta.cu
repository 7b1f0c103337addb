// One thread a sample: its elements follow from each other (see Beta in draws.cuh).
#include "draws.cuh"

PER_ITEM(beta) {
  Beta<OUT0> variates(OUT0(s.alpha), OUT0(s.beta));
  for (long long e = 0; e < s.size; e++) {
    Words words(s.stream, e);
    s.out0[e] = variates.draw(words);
  }
}
