#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace doppler {

// A set of ranks below n: a bitset with one summary bit per word. The smallest is found by scanning the
// summary, one word per 4096 ranks.
class RankSet {
 public:
  explicit RankSet(std::uint32_t n) : words_((n + 63) / 64, 0), summary_((words_.size() + 63) / 64, 0) {}

  bool empty() const { return size_ == 0; }
  void insert(std::uint32_t rank) {
    words_[rank / 64] |= bit(rank);
    summary_[rank / 4096] |= bit(rank / 64);
    ++size_;
  }
  // Removes and returns the smallest; the set must not be empty.
  std::uint32_t pop_smallest() {
    std::uint32_t block = 0;
    while (summary_[block] == 0) ++block;
    const std::uint32_t word = block * 64 + static_cast<std::uint32_t>(std::countr_zero(summary_[block]));
    const std::uint32_t rank = word * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
    words_[word] &= words_[word] - 1;
    if (words_[word] == 0) summary_[block] &= summary_[block] - 1;
    --size_;
    return rank;
  }

 private:
  static std::uint64_t bit(std::uint32_t index) { return std::uint64_t{1} << (index % 64); }

  std::vector<std::uint64_t> words_, summary_;
  std::uint32_t size_ = 0;
};

}  // namespace doppler
