// The variance over no axes.
PER_ITEM(zeros) { s.out0[i] = 0; }
