#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/learn/doppler/network.h"

namespace doppler {

// A network from its description: "gnn width 32 layers 2 messages episode", or "paper" (paper.h). Throws InputError for
// any other text.
std::unique_ptr<Network<float>> make_network(std::string_view architecture, Rng rng);

// The content of a policy file or checkpoint: a line with format and version, a line of JSON that says what the numbers
// mean (architecture, names of the features, sizes, checksum), then the numbers as little-endian f32. Version and
// feature names are part of it because a policy that reads its inputs in another order would answer nonsense.
struct PolicyFile {
  std::string architecture;
  std::vector<float> parameters;
  std::string made_by;  // one line for people: command, seeds, data
  // Only in checkpoints of a training.
  std::vector<float> adam_mean, adam_square;
  std::string training;  // JSON
};
std::string policy_to_bytes(const PolicyFile& file);
// `where` starts every error text. Throws InputError if the content is not a policy, is damaged, or was made for other
// features.
PolicyFile parse_policy(const std::string& where, std::string_view bytes);

// Network with the file's parameters.
std::unique_ptr<Network<float>> network_from(const std::string& where, const PolicyFile& file);

}  // namespace doppler
