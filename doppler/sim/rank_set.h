#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace doppler {

// A set of ranks below n with insert, erase and smallest in O(log64 n): a bitset with summary levels.
class RankSet {
 public:
  explicit RankSet(std::uint32_t n) {
    std::size_t words = n;
    do {
      words = (words + 63) / 64;
      level_begin_.push_back(words_.size());
      words_.resize(words_.size() + words, 0);
    } while (words > 1);
  }

  bool empty() const { return words_.back() == 0; }
  void insert(std::uint32_t rank) {
    for (const std::size_t begin : level_begin_) {
      std::uint64_t& word = words_[begin + rank / 64];
      const bool was_empty = word == 0;
      word |= std::uint64_t{1} << (rank % 64);
      if (!was_empty) return;
      rank /= 64;
    }
  }
  // Removes and returns the smallest; the set must not be empty.
  std::uint32_t pop_smallest() {
    std::uint32_t rank = 0;
    for (std::size_t level = level_begin_.size(); level-- > 0;)
      rank = rank * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[level_begin_[level] + rank]));
    std::uint32_t index = rank;
    for (const std::size_t begin : level_begin_) {
      std::uint64_t& word = words_[begin + index / 64];
      word &= ~(std::uint64_t{1} << (index % 64));
      if (word != 0) break;
      index /= 64;
    }
    return rank;
  }

 private:
  std::vector<std::uint64_t> words_;  // the bits, then each summary level; the last word covers all
  std::vector<std::size_t> level_begin_;
};

}  // namespace doppler
