#include "doppler/learn/train/policy_file.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/learn/policy_table.h"

namespace doppler {
namespace {

static_assert(std::endian::native == std::endian::little, "policy files are written as they are in memory");

constexpr std::string_view kMagic = "doppler-policy ";
constexpr int kVersion = 1;
constexpr std::size_t kMostParameters = 100'000'000;  // No file may make us allocate more.

// FNV-1a: finds damage, not malice.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

void append(std::string& bytes, const std::vector<float>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string_view take_line(const std::string& where, std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos)
    throw InputError(fmt::format("{}: ends early; required a whole policy file", where));
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

void check_features(const std::string& where, const std::vector<std::string>& found,
                    const std::vector<std::string>& required) {
  for (std::size_t i = 0; i < std::max(found.size(), required.size()); ++i) {
    const std::string is = i < found.size() ? found[i] : "none", want = i < required.size() ? required[i] : "none";
    if (is != want)
      throw InputError(
          fmt::format("{}: feature {} is '{}'; required '{}': the policy was made by another version of "
                      "doppler, train it again",
                      where, i, is, want));
  }
}

std::vector<float> take_floats(const std::string& where, std::string_view& bytes, std::size_t count) {
  if (count > kMostParameters || bytes.size() < count * sizeof(float))
    throw InputError(
        fmt::format("{}: {} numbers announced, {} bytes left; required all of them", where, count, bytes.size()));
  std::vector<float> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(float));
  bytes.remove_prefix(count * sizeof(float));
  for (const float value : values)
    if (!std::isfinite(value)) throw InputError(fmt::format("{}: found {}; required finite numbers", where, value));
  return values;
}

}  // namespace

std::string policy_to_bytes(const PolicyFile& file) {
  std::string numbers;
  append(numbers, file.parameters);
  append(numbers, file.adam_mean);
  append(numbers, file.adam_square);
  const Architecture& architecture = architecture_of("policy", file.architecture);
  nlohmann::ordered_json header;
  header["policy"] = architecture.policy;
  header["architecture"] = file.architecture;
  header["made_by"] = file.made_by;
  header["features"] = architecture.features();
  header["parameters"] = file.parameters.size();
  header["optimiser"] = file.adam_mean.size();
  header["training_bytes"] = file.training.size();
  header["checksum"] = fmt::format("{:016x}", checksum(numbers + file.training));
  return fmt::format("{}{}\n{}\n", kMagic, kVersion, header.dump()) + numbers + file.training;
}

PolicyFile parse_policy(const std::string& where, std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    throw InputError(fmt::format("{}: found something else; required a doppler policy or checkpoint", where));
  const std::string version(take_line(where, bytes).substr(kMagic.size()));
  if (version != std::to_string(kVersion))
    throw InputError(fmt::format("{}: policy format version '{}'; required {}", where, version, kVersion));
  PolicyFile file;
  try {
    const auto header = formats::parse_json(where, take_line(where, bytes), {});
    file.architecture = header.at("architecture").get<std::string>();
    file.made_by = header.at("made_by").get<std::string>();
    const Architecture& architecture = architecture_of(where, file.architecture);
    // Files of the first version of doppler do not name their policy.
    if (const auto policy = header.value("policy", std::string(architecture.policy)); policy != architecture.policy)
      throw InputError(fmt::format("{}: policy '{}' with architecture '{}'; required policy '{}'", where, policy,
                                   file.architecture, architecture.policy));
    const auto features = header.at("features").get<std::vector<std::string>>();
    const auto parameters = header.at("parameters").get<std::size_t>();
    const auto optimiser = header.at("optimiser").get<std::size_t>();
    const auto training = header.at("training_bytes").get<std::size_t>();
    if (const std::string sum = fmt::format("{:016x}", checksum(bytes)); header.at("checksum") != sum)
      throw InputError(fmt::format("{}: checksum {}; required {}: the file is damaged or cut short", where, sum,
                                   header.at("checksum").dump()));
    file.parameters = take_floats(where, bytes, parameters);
    file.adam_mean = take_floats(where, bytes, optimiser);
    file.adam_square = take_floats(where, bytes, optimiser);
    if (bytes.size() != training || (optimiser != 0 && optimiser != parameters))
      throw InputError(fmt::format("{}: {} bytes of training state; required {}", where, bytes.size(), training));
    file.training = bytes;
    // A checkpoint cannot go on with other features than it began with: its optimiser knows nothing of them.
    if (optimiser != 0 || architecture.widen == nullptr ||
        !architecture.widen(file.architecture, features, file.parameters))
      check_features(where, features, architecture.features());
  } catch (const nlohmann::json::exception& error) {
    throw InputError(
        fmt::format("{}: damaged header ({}); required the header of a doppler policy", where, error.what()));
  }
  return file;
}

PolicyFile file_of(const Policy& policy) {
  PolicyFile file;
  file.architecture = policy.architecture();
  file.parameters.assign(policy.parameters().begin(), policy.parameters().end());
  return file;
}

std::unique_ptr<Policy> policy_from(const std::string& where, const PolicyFile& file) {
  auto policy = make_policy(file.architecture, Rng(0));
  if (policy->parameters().size() != file.parameters.size())
    throw InputError(fmt::format("{}: {} parameters; required {} for '{}'", where, file.parameters.size(),
                                 policy->parameters().size(), file.architecture));
  std::copy(file.parameters.begin(), file.parameters.end(), policy->parameters().begin());
  return policy;
}

}  // namespace doppler
