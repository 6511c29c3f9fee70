#include "doppler/kernels/onnx/value_store.h"

#include <algorithm>

namespace doppler::model {
namespace {

// A buffer that is more than this many times as large as a value stays free for larger ones.
constexpr std::size_t kMostWaste = 4;

}  // namespace

void ValueStore::lay_out(std::vector<std::size_t> bytes, std::vector<std::uint32_t> users) {
  bytes_ = std::move(bytes);
  users_ = std::move(users);
  buffers_.resize(bytes_.size());
  block_.resize(bytes_.size());
  start();
}

void ValueStore::start() {
  left_ = users_;
  std::fill(buffers_.begin(), buffers_.end(), nullptr);
  for (Block& block : blocks_) block.used = false;
}

std::byte* ValueStore::acquire(ValueIndex value) {
  const std::size_t bytes = bytes_[value];
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  if (buffers_[value] != nullptr) return buffers_[value];
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const std::size_t size = block.memory.size();
    if (block.used || size < bytes || size > kMostWaste * bytes) continue;
    if (best == nullptr || size < best->memory.size()) best = &block;
  }
  if (best == nullptr) best = &blocks_.emplace_back(Block{AlignedBytes(bytes)});
  best->used = true;
  block_[value] = static_cast<std::size_t>(best - blocks_.data());
  return buffers_[value] = best->memory.data();
}

void ValueStore::release(ValueIndex value) {
  const std::lock_guard lock(mutex_);
  if (--left_[value] > 0 || buffers_[value] == nullptr) return;
  blocks_[block_[value]].used = false;
  buffers_[value] = nullptr;
}

std::size_t ValueStore::held_bytes() const {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.memory.size();
  return total;
}

}  // namespace doppler::model
