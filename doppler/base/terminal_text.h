#pragma once

#include <string>
#include <string_view>

namespace doppler {

// Returns the text as one line that only shows itself: control characters (escape sequences, line ends, NUL, the C1
// range), characters that are invisible or reorder their neighbours (U+202E) and bytes that are no UTF-8 are written
// out, as \n, \x1b, \u202e. Of what is longer than `most` bytes then, the middle is left out. Names come from files,
// and a terminal would obey them.
std::string for_terminal(std::string_view text, std::size_t most);

// The longest that a name may appear.
inline constexpr std::size_t kLongestName = 300;

}  // namespace doppler
