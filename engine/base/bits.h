// Rows of bits, 32 to a word: a token's bit is that of its id.
#pragma once

#include <cstdint>

namespace ag {

inline void set_bit(std::uint32_t* row, std::uint32_t id) { row[id / 32] |= 1u << (id % 32); }
inline void clear_bit(std::uint32_t* row, std::uint32_t id) { row[id / 32] &= ~(1u << (id % 32)); }
inline bool has_bit(const std::uint32_t* row, std::uint32_t id) { return row[id / 32] >> (id % 32) & 1; }

}  // namespace ag
