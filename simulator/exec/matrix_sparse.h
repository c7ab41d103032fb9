#pragma once

// Sparse matrices A: of each group of four elements (.tf32: two; .s4 and .u4:
// four pairs) two (one, two) are kept, and metadata says which. The metadata of
// a line of 16 bytes is half a word for elements of 16 and 32 bits, and a whole
// word for narrower ones. Of the four lanes of a row:
//
//   halves, two lines: lane 2 * selector + line; one line: lane `selector`. Low
//   half: the upper row. words, two lines: lane 2 * line + (1 for the lower
//   row); one line: lane 2 * selector + the same.
//
// (PTX ISA, figures of the metadata layouts; CUTLASS reorders metadata to the
// same effect.)

#include "simulator/exec/lanes.h"
#include "simulator/exec/matrix_tile.h"

namespace cb::sim {

/// Sparsity selectors that a form may have, from 0 on.
constexpr unsigned selectors_for(MatrixType type, unsigned lines) {
  unsigned lanes = bits_of(type) >= 16 ? lines : 2 * lines;
  return 4 / lanes;
}

/// The metadata of line `line` of row `row` of 16.
inline uint32_t metadata_of(MatrixType type, unsigned lines, unsigned row, unsigned line,
                            const uint32_t* words, unsigned selector) {
  const uint32_t* quad = words + row % 8 * 4;
  unsigned lower = row / 8;
  if (bits_of(type) >= 16) return quad[selector * lines + line] >> (16 * lower) & 0xffff;
  return quad[lines == 2 ? 2 * line + lower : 2 * selector + lower];
}

/// Puts the kept elements of 16 rows, `lines` lines each, in their places; the
/// others are 0.
inline void spread_rows(MatrixType type, unsigned lines, const uint32_t* words, unsigned selector,
                        float (*rows)[kMostK]) {
  unsigned per_line = elements_per_line(type);
  unsigned together = bits_of(type) == 4 ? 2 : 1;
  for (unsigned row = 0; row < 16; ++row) {
    float kept[kMostK / 2];
    std::memcpy(kept, rows[row], lines * per_line * sizeof(float));
    std::memset(rows[row], 0, 2 * lines * per_line * sizeof(float));
    for (unsigned line = 0; line < lines; ++line) {
      uint32_t metadata = metadata_of(type, lines, row, line, words, selector);
      const float* from = kept + line * per_line;
      float* to = rows[row] + 2 * line * per_line;
      if (type == MatrixType::kTf32) {
        // Four bits for an element: the places of its two halves.
        for (unsigned i = 0; i < per_line; ++i) to[2 * i + (metadata >> (4 * i + 1) & 1)] = from[i];
        continue;
      }
      for (unsigned i = 0; i < per_line / together; ++i) {
        unsigned place = i / 2 * 4 + (metadata >> (2 * i) & 3);
        for (unsigned j = 0; j < together; ++j) to[place * together + j] = from[i * together + j];
      }
    }
  }
}

}  // namespace cb::sim
