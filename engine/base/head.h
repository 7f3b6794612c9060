// The first bytes of a text as a number, which decides nearly every comparison of two texts.
#pragma once

#include <cstddef>
#include <string_view>

namespace ag {

// As many bytes as the number holds; zeros stand after the end. Numbers compare as the texts do, where they differ.
template <class Number>
Number head_of(std::string_view text) {
  Number out = 0;
  for (std::size_t k = 0; k < sizeof(Number); ++k)
    out = out << 8 | (k < text.size() ? static_cast<unsigned char>(text[k]) : 0);
  return out;
}

}  // namespace ag
