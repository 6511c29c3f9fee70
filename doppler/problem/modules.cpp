#include "doppler/problem/modules.h"

#include <algorithm>
#include <cctype>

namespace doppler {
namespace {

bool is_number_text(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether the last of the parts between dots is a number: "layer1.0", "0".
bool ends_in_number(std::string_view component) {
  const std::size_t dot = component.rfind('.');
  return is_number_text(dot == std::string_view::npos ? component : component.substr(dot + 1));
}

// "/a/b/Conv" gives a and b: everything before the op's own name.
std::vector<std::string> components_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (end > begin) parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!parts.empty()) parts.pop_back();
  return parts;
}

// "relu" of "relu_1"; empty if the name does not end so.
std::string without_call_number(const std::string& component) {
  const std::size_t underscore = component.rfind('_');
  if (underscore == std::string::npos || underscore == 0) return {};
  return is_number_text(std::string_view(component).substr(underscore + 1)) ? component.substr(0, underscore)
                                                                            : std::string();
}

}  // namespace

Modules::Modules(const Graph& graph, std::span<const std::string> parameters) : module_of_op_(graph.op_count(), kNone) {
  std::map<std::string, bool> holds_parameters;
  for (const std::string& name : parameters)
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      holds_parameters[name.substr(0, dot)] = true;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    Id module = kNone;
    for (const std::string& component : components_of(graph.name(op)))
      module = find_or_add(module, component, holds_parameters);
    module_of_op_[op] = module;
    if (module != kNone) modules_[module].has_ops = true;
  }
  for (Id id = 0; id < modules_.size(); ++id) {  // Parents have smaller ids.
    Module& module = modules_[id];
    module.numbered = ends_in_number(component_[id]) || (module.parent != kNone && modules_[module.parent].numbered);
    if (module.parent != kNone) modules_[module.parent].has_modules = true;
  }
  for (Id id = 0; id < modules_.size(); ++id) {
    if (!ends_in_number(component_[id]) || !modules_[id].has_modules) continue;
    for (Id around = modules_[id].parent; around != kNone; around = modules_[around].parent)
      modules_[around].has_blocks = true;
  }
}

Modules::Id Modules::find_or_add(Id parent, const std::string& component,
                                 const std::map<std::string, bool>& holds_parameters) {
  const auto found = by_component_.find({parent, component});
  if (found != by_component_.end()) return found->second;
  Module module;
  module.parent = parent;
  if (parent == kNone) {
    module.name = component;
  } else {
    const std::string& around = modules_[parent].name;
    const bool repeats = component.starts_with(component_[parent] + ".");
    module.name =
        repeats ? around.substr(0, around.size() - component_[parent].size()) + component : around + "." + component;
  }
  const std::string base = without_call_number(component);
  if (const auto first = by_component_.find({parent, base});
      !base.empty() && first != by_component_.end() && !holds_parameters.contains(module.name))
    return by_component_[{parent, component}] = first->second;
  const Id id = static_cast<Id>(modules_.size());
  modules_.push_back(std::move(module));
  component_.push_back(component);
  return by_component_[{parent, component}] = id;
}

std::vector<Modules::Id> Modules::path(OpId op) const {
  std::vector<Id> path;
  for (Id id = of(op); id != kNone; id = modules_[id].parent) path.push_back(id);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<std::string> Modules::units(Granularity granularity) const {
  std::vector<std::string> labels(module_of_op_.size());
  if (granularity == Granularity::op) return labels;
  for (OpId op = 0; op < labels.size(); ++op) {
    const Id innermost = of(op);
    if (innermost == kNone) continue;
    const std::vector<Id> around = path(op);
    auto unit = std::find_if(around.begin(), around.end(), [&](Id id) {
      return granularity == Granularity::layer ? ends_in_number(component_[id]) : indivisible(id);
    });
    if (unit == around.end()) unit = std::find_if(around.begin(), around.end(), [&](Id id) { return indivisible(id); });
    // Ops of a module that only hands data through its modules stay apart: they need not be where these are.
    if (unit == around.end() && modules_[innermost].has_modules) continue;
    labels[op] = modules_[unit == around.end() ? innermost : *unit].name;
  }
  return labels;
}

}  // namespace doppler
