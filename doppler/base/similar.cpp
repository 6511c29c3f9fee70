#include "doppler/base/similar.h"

#include <algorithm>

#include <fmt/format.h>

namespace doppler {
namespace {

constexpr std::size_t kLongestWord = 80;  // Distances take the product of two lengths.

// Edits between two words, where swapping neighbours is one edit.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> similar(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kShown = 3;
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::size_t most = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t lengths = std::max(candidate.size(), word.size()) - std::min(candidate.size(), word.size());
    const std::size_t edits = lengths > most ? lengths : distance(word, candidate);
    if (edits <= most)
      found.emplace_back(edits, candidate);
    else if (word.size() > 1 && candidate.starts_with(word))
      found.emplace_back(most + 1, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (const auto& [edits, name] : found)
    if (names.size() < kShown) names.push_back(name);
  return names;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> names = similar(word, candidates);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text.empty() ? text : fmt::format("; did you mean {}?", text);
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {  // The star takes one more.
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace doppler
