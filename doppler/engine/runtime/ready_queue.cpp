#include "doppler/engine/runtime/ready_queue.h"

#include <algorithm>

namespace doppler {

void ReadyQueue::prepare(Discipline discipline, std::span<const OpId> ops, std::span<const std::uint32_t> rank,
                         const Rng& rng) {
  discipline_ = discipline;
  rng_ = rng;
  first_ = count_ = next_ = 0;
  if (discipline == Discipline::fifo) {
    waiting_.resize(std::max<std::size_t>(ops.size(), 1));
    return;
  }
  waiting_.clear();
  waiting_.reserve(ops.size());
  if (discipline == Discipline::random) return;
  by_rank_.assign(ops.begin(), ops.end());
  std::sort(by_rank_.begin(), by_rank_.end(), [&](OpId a, OpId b) { return rank[a] < rank[b]; });
  place_.resize(rank.size());
  for (std::uint32_t i = 0; i < by_rank_.size(); ++i) place_[by_rank_[i]] = i;
  ranks_ = RankSet(static_cast<std::uint32_t>(ops.size()));
  is_ready_.assign(ops.size(), 0);
}

void ReadyQueue::push(OpId op) {
  switch (discipline_) {
    case Discipline::fifo: {
      std::size_t end = first_ + count_++;
      if (end >= waiting_.size()) end -= waiting_.size();
      waiting_[end] = op;
      return;
    }
    case Discipline::random:
      waiting_.push_back(op);
      return;
    case Discipline::priority:
      ranks_.insert(place_[op]);
      return;
    case Discipline::ordered:
      is_ready_[place_[op]] = 1;
      return;
  }
}

std::optional<OpId> ReadyQueue::pop() {
  switch (discipline_) {
    case Discipline::fifo: {
      if (count_ == 0) return std::nullopt;
      const OpId op = waiting_[first_];
      if (++first_ == waiting_.size()) first_ = 0;
      --count_;
      return op;
    }
    case Discipline::random: {
      if (waiting_.empty()) return std::nullopt;
      std::swap(waiting_[rng_.below(static_cast<std::uint32_t>(waiting_.size()))], waiting_.back());
      const OpId op = waiting_.back();
      waiting_.pop_back();
      return op;
    }
    case Discipline::priority:
      if (ranks_.empty()) return std::nullopt;
      return by_rank_[ranks_.pop_smallest()];
    case Discipline::ordered:
      if (next_ == by_rank_.size() || !is_ready_[next_]) return std::nullopt;
      is_ready_[next_] = 0;
      return by_rank_[next_++];
  }
  return std::nullopt;
}

void ReadyQueue::put_back(OpId op) {
  if (discipline_ == Discipline::fifo) {
    first_ = (first_ == 0 ? waiting_.size() : first_) - 1;
    waiting_[first_] = op;
    ++count_;
    return;
  }
  if (discipline_ == Discipline::ordered) next_ = place_[op];
  push(op);
}

}  // namespace doppler
