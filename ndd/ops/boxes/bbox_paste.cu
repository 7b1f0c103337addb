// A thread for each number.
PER_ITEM(bbox_paste) { s.out0[i] = s.in0[i] * s.factor + s.shift[i & 3]; }
