// What crop_mirror_normalize does with an element of its input HWC, done by the kernel that makes this element.
//
// `Normalized{s, shared, 0}` stands for the pointer to the input's memory, which there is none of: `target[i] = value`
// writes what becomes of element i to its place in the output, if the window holds it. The rows of `geometry` are those
// of crop_mirror_normalize.cu. `JOINED` is the type of the output, `TARGET_TYPE` that of the elements.
struct Normalized {
  const Sample& s;
  const Shared& shared;
  long long at;

  inline Normalized operator+(long long more) const { return {s, shared, at + more}; }
  inline Normalized operator[](long long more) const { return *this + more; }

  inline void operator=(TARGET_TYPE value) const {
    const unsigned int channels = (unsigned int)s.geometry[2][4], line = channels * (unsigned int)s.geometry[2][3];
    const unsigned long long row = quotient(at, line);
    const unsigned int rest = (unsigned int)(at - row * line), column = rest / channels, c = rest - column * channels;
    const long long y = (long long)row - s.geometry[1][2], across = column - s.geometry[1][3];
    const long long width = s.geometry[0][3];
    if (y < 0 || y >= s.geometry[0][2] || across < 0 || across >= width) return;
    const long long x = s.mirror ? width - 1 - across : across;
    s.out0[y * s.geometry[4][2] + x * s.geometry[4][3] + c * s.geometry[4][4]] =
        convert<JOINED>(((float)value - s.mean[c]) * s.gain[c] + shared.shift);
  }
};
