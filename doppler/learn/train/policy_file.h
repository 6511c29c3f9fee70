#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/learn/policy.h"

namespace doppler {

// The content of a policy file or checkpoint: a line with format and version, a line of JSON that says what the numbers
// mean (policy, architecture, names of the features, sizes, checksum), then the numbers as little-endian f32. Version
// and feature names are part of it because a policy that reads its inputs in another order would answer nonsense.
struct PolicyFile {
  std::string architecture;  // A description that policy_table.h can make a policy of.
  std::vector<float> parameters;
  std::string made_by;  // One line for people: command, seeds, data.
  // Only checkpoints of a training have these.
  std::vector<float> adam_mean, adam_square;
  std::string training;  // JSON
};
std::string policy_to_bytes(const PolicyFile& file);
// `where` starts every error text. Throws InputError if the content is not a policy, is damaged, or was made for other
// features.
PolicyFile parse_policy(const std::string& where, std::string_view bytes);

// The file of a policy as it stands, without what only a training needs.
PolicyFile file_of(const Policy& policy);
// The policy with the file's parameters. Throws InputError if the file does not fit its architecture.
std::unique_ptr<Policy> policy_from(const std::string& where, const PolicyFile& file);

}  // namespace doppler
