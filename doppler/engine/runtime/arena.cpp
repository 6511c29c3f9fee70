#include "doppler/engine/runtime/arena.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace doppler {
namespace {
constexpr unsigned kSmallestLog = 6;  // the smallest buffer has 64 bytes
}

std::size_t Arena::size_class(Bytes bytes) {
  const Bytes size = std::max<Bytes>(bytes, Bytes{1} << kSmallestLog);
  const unsigned log =
      static_cast<unsigned>(std::bit_width(size - 1)) - 1;  // 2^log < size <= 2^(log+1), or the size is 64
  if (log + 1 <= kSmallestLog) return 0;
  const Bytes quarter = Bytes{1} << (log - 2);
  const Bytes quarters = (size - (Bytes{1} << log) + quarter - 1) / quarter;  // 1 … 4
  return (log - kSmallestLog) * 4 + quarters;
}

Bytes Arena::class_bytes(std::size_t size_class) {
  if (size_class == 0) return Bytes{1} << kSmallestLog;
  const std::size_t log = (size_class - 1) / 4 + kSmallestLog, quarters = (size_class - 1) % 4 + 1;
  return (Bytes{1} << log) + quarters * (Bytes{1} << (log - 2));
}

bool Arena::reserve(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const Bytes used = this->used() + bytes;
  if (capacity_ > 0 && used > capacity_) {
    wanted_ = true;
    return false;
  }
  used_.store(used, std::memory_order_relaxed);
  peak_ = std::max(peak_, used);
  return true;
}

std::byte* Arena::take(Bytes bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t index = size_class(bytes);
  const std::lock_guard lock(mutex_);
  std::vector<std::byte*>& free = free_[index];
  if (free.empty()) {
    blocks_.emplace_back(Block(memory_.allocate(device_, class_bytes(index)), Free{&memory_, device_}), index);
    free.reserve(blocks_.size());  // a release never allocates
    return blocks_.back().first.get();
  }
  std::byte* data = free.back();
  free.pop_back();
  return data;
}

bool Arena::release(std::byte* data, Bytes bytes) {
  if (bytes == 0) return false;
  const std::lock_guard lock(mutex_);
  used_.store(used() - bytes, std::memory_order_relaxed);
  free_[size_class(bytes)].push_back(data);
  releases_.fetch_add(1, std::memory_order_seq_cst);
  return std::exchange(wanted_, false);
}

bool Arena::start(Bytes parameters) {
  for (std::vector<std::byte*>& free : free_) free.clear();
  for (const auto& [block, index] : blocks_) free_[index].push_back(block.get());
  used_.store(parameters, std::memory_order_relaxed);
  peak_ = parameters;
  wanted_ = false;
  return capacity_ == 0 || parameters <= capacity_;
}

}  // namespace doppler
