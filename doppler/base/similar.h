#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

// Returns the candidates that a misspelt word may have meant, the most similar first, at most three: those that few
// insertions, deletions, changes and swaps of neighbours make of it (Damerau and Levenshtein), or that begin with it.
std::vector<std::string> similar(std::string_view word, std::span<const std::string> candidates);
// The same as the end of an error text: "; did you mean 'heft'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Whether a pattern of characters, * (any text) and ? (any character) matches the whole text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace doppler
