#pragma once

#include <mutex>
#include <vector>

#include "doppler/kernels/array.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::model {

// The memory of a model's values where all devices share it. A value has one buffer for all of its blocks, from the
// first op that writes to it until its last user is done; then the buffer goes to another value. Nothing is allocated
// once there are enough buffers. Calls come from all threads.
class ValueStore {
 public:
  // By value: its bytes and how many blocks of ops, and results, use it.
  void lay_out(std::vector<std::size_t> bytes, std::vector<std::uint32_t> users);

  // Forgets the last run.
  void start();
  // Returns the buffer of a value that is about to be written.
  std::byte* acquire(ValueIndex value);
  // Returns the buffer of a value of which something has been written.
  std::byte* at(ValueIndex value) const { return buffers_[value]; }
  // Counts one user less.
  void release(ValueIndex value);

  std::size_t held_bytes() const;  // of all buffers

 private:
  struct Block {
    AlignedBytes memory;
    bool used = false;
  };
  std::mutex mutex_;
  std::vector<std::size_t> bytes_;
  std::vector<std::uint32_t> users_, left_;
  std::vector<std::byte*> buffers_;  // by value; null before and after its life
  std::vector<std::size_t> block_;   // by value: the block that it has
  std::vector<Block> blocks_;
};

}  // namespace doppler::model
