// One thread an element; frame k of the output is frame order[k] of the input.
PER_ITEM(sequence_rearrange) {
  const long long frame = i / s.inner;
  s.out0[i] = s.in0[i + (s.order[frame] - frame) * s.inner];
}
