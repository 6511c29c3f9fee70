#pragma once

#include <memory>

#include "doppler/base/rng.h"
#include "doppler/learn/train/task.h"

namespace doppler {

// What a stream of generated tasks varies over; every range is drawn from log-uniformly.
struct GeneratedTaskOptions {
  OpId fewest_ops = 30, most_ops = 5000;
  DeviceId fewest_devices = 2, most_devices = 16;
  double least_communication = 0.1,
         most_communication = 50;  // Transfer time over compute time, as in graph/generate.h.
  double heterogeneous = 0.3;      // The share of the machines with unequal speeds and links.
  double varied = 0.5;             // The share of the machines whose times vary,
  double most_jitter = 0.3;        // by a jitter up to this.
  // Fifo half of the time, otherwise priority or ordered; of five tasks two have free links, two channels, and one has
  // copies by the receiver. If false, always `rules`.
  bool mixed_rules = true;
  Rules rules = {};
};

// Makes a random graph (layered, random, series-parallel, a chain of blocks, a chain with parameters, or a network cut
// into shards) on a random machine.
std::unique_ptr<Task> generate_task(const GeneratedTaskOptions& options, Rng rng);

// The seed of the tasks that are generated to choose between policies: the same for every training, whatever its seed.
inline constexpr std::uint64_t kHeldOutSeed = 1'000'003;

}  // namespace doppler
