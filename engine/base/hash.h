// One hash for lists of numbers.
#pragma once

#include <cstdint>

namespace ag {

// Takes numbers one after the other; `h` is what was made of those before them.
inline std::uint64_t hash_next(std::uint64_t h, std::uint64_t number) {
  h = (h ^ number) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}

template <class Numbers>
std::uint64_t hash_numbers(const Numbers& numbers) {
  std::uint64_t h = numbers.size();
  for (const auto number : numbers) h = hash_next(h, number);
  return h;
}

}  // namespace ag
