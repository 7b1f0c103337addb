// A thread for each number: it works out its own side of the box.
PER_ITEM(bb_flip) {
  const int column = int(i & 3), axis = column & 1;
  const float* box = s.in0 + (i - column);
  float low = box[axis], high = box[2 + axis];
  if (!shared.ltrb) high += low;
  if (s.mirror[axis]) {
    const float before = low;
    low = 1.0f - high;
    high = 1.0f - before;
  }
  s.out0[i] = column < 2 ? low : shared.ltrb ? high : high - low;
}
