"""The columns of a `picture_table`, int64 `[N, NUMBERS]`, in which compiled loops find the pictures of a batch."""

# Address and bytes of the file, address and bytes of the result, the size in the header, the window
# (first row, first column, rows, columns), channels of the result, blue before red, and the part of the picture as stored that
# is used (first row, first column, the ones after the last): pixels outside it may stay undefined.
FILE, FILE_BYTES, OUT, OUT_BYTES, ROWS, COLUMNS, TOP, LEFT, HIGH, WIDE, DEPTH, IS_BGR = range(12)
USED_TOP, USED_LEFT, USED_BOTTOM, USED_RIGHT, NUMBERS = range(12, 17)
