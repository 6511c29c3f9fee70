#include "doppler/learn/train/policy_file.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/module.h"
#include "doppler/learn/doppler/gnn.h"
#include "doppler/learn/paper/paper.h"

namespace doppler {
namespace {

static_assert(std::endian::native == std::endian::little, "policy files are written as they are in memory");

constexpr std::string_view kMagic = "doppler-policy ";
constexpr int kVersion = 1;
constexpr std::size_t kMostParameters = 100'000'000;  // no file may make us allocate more

// FNV-1a: finds damage, not malice.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  names.reserve(kNodeFeatures.size() + kDeviceFeatures.size() + kPaperDeviceFeatures.size());
  for (const std::string_view name : kNodeFeatures) names.emplace_back("node " + std::string(name));
  for (const std::string_view name : kDeviceFeatures) names.emplace_back("device " + std::string(name));
  for (const std::string_view name : kPaperDeviceFeatures) names.emplace_back("paper " + std::string(name));
  return names;
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

void check_features(const std::string& where, const std::vector<std::string>& found) {
  const std::vector<std::string> required = feature_names();
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

std::unique_ptr<Network<float>> make_network(std::string_view architecture, Rng rng) {
  if (architecture == "paper") return make_paper_network(rng, library_directory());
  GnnShape shape;
  std::size_t& width = shape.width;
  char messages[16] = "";
  const std::string text(architecture);
  if (std::sscanf(text.c_str(), "gnn width %zu layers %zu messages %15s", &width, &shape.layers, messages) == 3) {
    shape.per_step = std::string_view(messages) == "step";
    const bool sane = width > 0 && width <= 512 && width % kBlock == 0 && shape.layers <= 16;
    if (sane) {
      auto network = std::make_unique<Gnn<float>>(shape, rng);
      if (network->architecture() == text) return network;
    }
  }
  throw InputError(
      fmt::format("architecture: found '{}'; required 'paper' or 'gnn width W layers L messages episode|step', W a "
                  "multiple of {} up to 512, L up to 16",
                  text, kBlock));
}

std::string policy_to_bytes(const PolicyFile& file) {
  std::string numbers;
  append(numbers, file.parameters);
  append(numbers, file.adam_mean);
  append(numbers, file.adam_square);
  nlohmann::ordered_json header;
  header["architecture"] = file.architecture;
  header["made_by"] = file.made_by;
  header["features"] = feature_names();
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
    const auto header = nlohmann::json::parse(take_line(where, bytes));
    file.architecture = header.at("architecture").get<std::string>();
    file.made_by = header.at("made_by").get<std::string>();
    check_features(where, header.at("features").get<std::vector<std::string>>());
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
  } catch (const nlohmann::json::exception& error) {
    throw InputError(
        fmt::format("{}: damaged header ({}); required the header of a doppler policy", where, error.what()));
  }
  return file;
}

std::unique_ptr<Network<float>> network_from(const std::string& where, const PolicyFile& file) {
  auto network = make_network(file.architecture, Rng(0));
  if (network->parameters().size() != file.parameters.size())
    throw InputError(fmt::format("{}: {} parameters; required {} for '{}'", where, file.parameters.size(),
                                 network->parameters().size(), file.architecture));
  std::copy(file.parameters.begin(), file.parameters.end(), network->parameters().begin());
  return network;
}

}  // namespace doppler
