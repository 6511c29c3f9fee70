#include "doppler/place/list/idle_time.h"

#include <algorithm>

#include "doppler/base/error.h"

namespace doppler {

std::size_t IdleTime::first_chunk_ending_after(Seconds time) const {
  const auto found = std::partition_point(chunks_.begin(), chunks_.end(),
                                          [&](const Chunk& chunk) { return chunk.gaps.back().end <= time; });
  return static_cast<std::size_t>(found - chunks_.begin());
}

std::vector<IdleTime::Gap>::const_iterator IdleTime::first_gap_ending_after(Seconds time,
                                                                            const std::vector<Gap>& gaps) {
  return std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& gap) { return gap.end <= time; });
}

Seconds IdleTime::earliest(Seconds from, Seconds duration) const {
  const std::size_t first = first_chunk_ending_after(from);
  for (std::size_t i = first; i < chunks_.size(); ++i) {
    if (chunks_[i].longest < duration) continue;
    const std::vector<Gap>& gaps = chunks_[i].gaps;
    for (auto gap = i == first ? first_gap_ending_after(from, gaps) : gaps.begin(); gap != gaps.end(); ++gap) {
      const Seconds start = std::max(gap->begin, from);
      if (start + duration <= gap->end) return start;
    }
  }
  return std::max(from, end_);
}

void IdleTime::reserve(Seconds start, Seconds duration) {
  if (start >= end_) {
    if (start > end_) append_gap({end_, start});
    end_ = start + duration;
    return;
  }
  const std::size_t i = first_chunk_ending_after(start);
  DOPPLER_CHECK(i < chunks_.size(), "no gap at {}", start);
  std::vector<Gap>& gaps = chunks_[i].gaps;
  const auto gap = gaps.begin() + (first_gap_ending_after(start, gaps) - gaps.cbegin());
  DOPPLER_CHECK(gap->begin <= start && start + duration <= gap->end, "gap {}..{} for {} + {}", gap->begin, gap->end,
                start, duration);
  const Gap before{gap->begin, start}, after{start + duration, gap->end};
  if (before.begin < before.end && after.begin < after.end) {
    *gap = before;
    gaps.insert(gap + 1, after);
  } else if (before.begin < before.end) {
    *gap = before;
  } else if (after.begin < after.end) {
    *gap = after;
  } else {
    gaps.erase(gap);
  }
  refresh(i);
}

void IdleTime::append_gap(Gap gap) {
  if (chunks_.empty() || chunks_.back().gaps.size() >= kChunkGaps) chunks_.emplace_back();
  chunks_.back().gaps.push_back(gap);
  chunks_.back().longest = std::max(chunks_.back().longest, gap.end - gap.begin);
}

void IdleTime::refresh(std::size_t chunk) {
  std::vector<Gap>& gaps = chunks_[chunk].gaps;
  if (gaps.empty()) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(chunk));
    return;
  }
  if (gaps.size() > 2 * kChunkGaps) {
    Chunk upper;
    upper.gaps.assign(gaps.begin() + kChunkGaps, gaps.end());
    gaps.resize(kChunkGaps);
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(chunk) + 1, std::move(upper));
    refresh(chunk + 1);
  }
  Seconds longest = 0;
  for (const Gap& gap : chunks_[chunk].gaps) longest = std::max(longest, gap.end - gap.begin);
  chunks_[chunk].longest = longest;
}

}  // namespace doppler
