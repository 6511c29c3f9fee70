#include "doppler/program/onnx/graph_body.h"

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::model {

void Attributes::set(std::string name, Attribute::Values value) {
  for (Attribute& attribute : list_)
    if (attribute.name == name) {
      attribute.value = std::move(value);
      attribute.refers_to.clear();
      return;
    }
  list_.push_back({std::move(name), std::move(value), {}});
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const Attribute& attribute : list_)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

template <typename T>
const T* Attributes::get(std::string_view name, const char* wanted) const {
  const Attribute* found = find(name);
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(&found->value);
  if (value == nullptr) throw InputError(fmt::format("attribute '{}': found another type; required {}", name, wanted));
  return value;
}

Index Attributes::integer(std::string_view name, Index otherwise) const {
  const auto* value = get<Index>(name, "an integer");
  return value != nullptr ? *value : otherwise;
}
float Attributes::real(std::string_view name, float otherwise) const {
  const auto* value = get<float>(name, "a number");
  return value != nullptr ? *value : otherwise;
}
std::string Attributes::text(std::string_view name, std::string otherwise) const {
  const auto* value = get<std::string>(name, "a text");
  return value != nullptr ? *value : std::move(otherwise);
}
std::optional<std::vector<Index>> Attributes::integers(std::string_view name) const {
  const auto* value = get<std::vector<Index>>(name, "integers");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
std::optional<std::vector<float>> Attributes::reals(std::string_view name) const {
  const auto* value = get<std::vector<float>>(name, "numbers");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
std::optional<std::vector<std::string>> Attributes::texts(std::string_view name) const {
  const auto* value = get<std::vector<std::string>>(name, "texts");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
const Tensor* Attributes::tensor(std::string_view name) const { return get<Tensor>(name, "a tensor"); }
std::shared_ptr<const GraphBody> Attributes::graph(std::string_view name) const {
  const auto* value = get<std::shared_ptr<const GraphBody>>(name, "a graph");
  return value != nullptr ? *value : nullptr;
}

std::string describe(const Node& node) {
  const std::string& name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
  return fmt::format("node '{}' ({}{}{})", name, node.domain, node.domain.empty() ? "" : ".", node.op_type);
}

}  // namespace doppler::model
