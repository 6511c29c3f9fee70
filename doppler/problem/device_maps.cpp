#include "doppler/problem/device_maps.h"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/similar.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/problem/graph_files.h"
#include "doppler/problem/modules.h"

namespace doppler {
namespace {

constexpr DeviceId kNowhere = std::numeric_limits<DeviceId>::max();
constexpr std::size_t kNamesShown = 5;

// One line of a map: a name, and the device of what it means.
struct MapEntry {
  std::string name;
  DeviceId device = 0;
  bool begins = false;  // also means whatever begins so
};

std::string trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// The accelerator of a number, as CUDA counts them: processors are left out.
DeviceId accelerator(const std::string& where, const Machine& machine, std::uint64_t number) {
  std::uint64_t left = number;
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (machine.device(id).type != "cpu" && left-- == 0) return id;
  throw InputError(fmt::format("{}: found device {}; required an accelerator of machine '{}', which has {}", where,
                               number, machine.name(), number - left));
}

DeviceId device_called(const std::string& where, const Machine& machine, const std::string& name) {
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (machine.device(id).name == name) return id;
  if (name == "disk" || name == "meta")
    throw InputError(fmt::format("{}: found device '{}', which computes nothing; required one that does", where, name));
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  if (kind == "cpu") {
    for (DeviceId id = 0; id < machine.device_count(); ++id)
      if (machine.device(id).type == "cpu") return id;
  } else if (kind == "cuda" || kind == "gpu") {
    const std::string digits = colon == std::string::npos ? "0" : name.substr(colon + 1);
    if (!digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == std::string::npos)
      return accelerator(where, machine, std::stoul(digits));
  }
  return machine.device_by_name(name);  // throws with all names
}

std::vector<MapEntry> entries_of_json(const std::string& where, const nlohmann::json& map, const Machine& machine) {
  std::vector<MapEntry> entries;
  for (const auto& [name, device] : map.items()) {
    const std::string at = fmt::format("{}: '{}'", where, name);
    if (device.is_number_unsigned())
      entries.push_back({name, accelerator(at, machine, device.get<std::uint64_t>())});
    else if (device.is_string())
      entries.push_back({name, device_called(at, machine, device.get<std::string>())});
    else
      throw InputError(fmt::format("{}: found {}; required a device: a number or a name", at, device.dump()));
  }
  return entries;
}

// "gpu:0(a, b); cpu(=c)"
std::vector<MapEntry> entries_of_settings(const std::string& where, std::string_view text, const Machine& machine) {
  std::vector<MapEntry> entries;
  const auto fail = [&](std::string_view found) {
    throw InputError(
        fmt::format("{}: found '{}'; required a placement file, a JSON object of names and devices, or "
                    "device(name, …); …",
                    where, found.substr(0, 60)));
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string rule = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (rule.empty()) continue;
    const std::size_t open = rule.find('(');
    if (open == std::string::npos || open == 0 || rule.back() != ')') fail(rule);
    const DeviceId device = device_called(where, machine, trimmed(rule.substr(0, open)));
    const std::string names = rule.substr(open + 1, rule.size() - open - 2);
    for (std::size_t at = 0; at <= names.size();) {
      const std::size_t comma = std::min(names.find(',', at), names.size());
      std::string name = trimmed(names.substr(at, comma - at));
      at = comma + 1;
      if (name.empty()) fail(rule);
      const bool exact = name.front() == '=';
      entries.push_back({exact ? name.substr(1) : name, device, !exact});
    }
  }
  if (entries.empty()) fail(text);
  return entries;
}

// Whether an entry means something called `name`: itself, or what is in it.
bool means(const MapEntry& entry, std::string_view name) {
  if (entry.name.empty() || entry.name == name) return true;
  return name.starts_with(entry.name) && (entry.begins || name[entry.name.size()] == '.');
}

class MappedGraph {
 public:
  MappedGraph(const std::string& where, const GraphFile& file, std::vector<MapEntry> entries)
      : where_(where),
        file_(file),
        graph_(*file.graph),
        modules_(graph_, file.onnx ? file.onnx->parameter_names() : std::vector<std::string>()),
        entries_(std::move(entries)),
        used_(entries_.size(), false),
        device_of_op_(graph_.op_count(), kNowhere) {}

  std::vector<DeviceId> devices() && {
    for (OpId op = 0; op < graph_.op_count(); ++op) place(op);
    use_parameters();
    refuse_unknown_names();
    spread_along_edges();
    refuse_missing();
    return std::move(device_of_op_);
  }

 private:
  // The longest name that means the op, or a module around it, decides.
  void place(OpId op) {
    std::vector<std::string_view> names{graph_.name(op)};
    for (const Modules::Id id : modules_.path(op)) names.push_back(modules_[id].name);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const auto fits = [&](std::string_view name) { return means(entries_[i], name); };
      if (std::none_of(names.begin(), names.end(), fits)) continue;
      used_[i] = true;
      if (device_of_op_[op] != kNowhere && entries_[i].name.size() < longest) continue;
      longest = entries_[i].name.size();
      device_of_op_[op] = entries_[i].device;
    }
  }

  // A parameter may be in a map by its own name; the ops that read it and have no other place go there.
  void use_parameters() {
    if (!file_.onnx) return;
    for (const program::OnnxParameter& parameter : file_.onnx->parameters)
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (!means(entries_[i], parameter.name)) continue;
        used_[i] = true;
        for (const OpId op : parameter.readers)
          if (device_of_op_[op] == kNowhere) device_of_op_[op] = entries_[i].device;
      }
  }

  void refuse_unknown_names() const {
    std::vector<std::string> known, unknown;
    for (Modules::Id id = 0; id < modules_.size(); ++id) known.push_back(modules_[id].name);
    for (OpId op = 0; op < graph_.op_count(); ++op) known.push_back(graph_.name(op));
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (!used_[i]) {
        const std::vector<std::string> near = similar(entries_[i].name, known);
        unknown.push_back(fmt::format("'{}'{}", entries_[i].name,
                                      near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near.front())));
      }
    if (!unknown.empty())
      throw InputError(fmt::format("{}: no op or module is called {}; required names of ops or modules of {}", where_,
                                   listed(unknown), file_.path));
  }

  // Ops that nothing names follow their inputs, or else who reads them.
  void spread_along_edges() {
    const auto order = graph_.topological_order();
    for (const OpId op : order)
      for (const TensorId tensor : graph_.inputs(op))
        if (device_of_op_[op] == kNowhere && nameless(op)) device_of_op_[op] = device_of_op_[graph_.producer(tensor)];
    for (auto op = order.rbegin(); op != order.rend(); ++op)
      for (const TensorId tensor : graph_.outputs(*op))
        for (const OpId reader : graph_.consumers(tensor))
          if (device_of_op_[*op] == kNowhere && nameless(*op)) device_of_op_[*op] = device_of_op_[reader];
  }
  // In no module, or beside the blocks of one that is divided: no map can name it but by itself.
  bool nameless(OpId op) const {
    const Modules::Id module = modules_.of(op);
    return module == Modules::kNone || (modules_[module].has_modules && !modules_.indivisible(module));
  }

  void refuse_missing() const {
    std::vector<std::string> missing;
    for (OpId op = 0; op < graph_.op_count(); ++op) {
      if (device_of_op_[op] != kNowhere) continue;
      const Modules::Id module = modules_.of(op);
      const std::string name = fmt::format("'{}'", module == Modules::kNone ? graph_.name(op) : modules_[module].name);
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
    }
    if (!missing.empty())
      throw InputError(fmt::format("{}: no device for {}; required one for every op", where_, listed(missing)));
  }

  static std::string listed(const std::vector<std::string>& names) {
    const std::size_t shown = std::min(names.size(), kNamesShown);
    std::string text =
        fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
  }

  const std::string& where_;
  const GraphFile& file_;
  const Graph& graph_;
  Modules modules_;
  std::vector<MapEntry> entries_;
  std::vector<bool> used_;
  std::vector<DeviceId> device_of_op_;
};

}  // namespace

PlacementFile parse_any_placement(const std::string& where, std::string_view text, const GraphFile& file,
                                  const Machine& machine) {
  const std::string start = trimmed(text.substr(0, 4096));
  if (!start.starts_with('{') && !start.starts_with('[')) {
    PlacementFile placed;
    placed.placement.device_of_op = MappedGraph(where, file, entries_of_settings(where, text, machine)).devices();
    return placed;
  }
  const nlohmann::json json = formats::parse_json(where, text, {});
  if (!json.is_object() || json.contains("format") || json.contains("assignment")) return parse_placement(where, text);
  PlacementFile placed;
  placed.placement.device_of_op = MappedGraph(where, file, entries_of_json(where, json, machine)).devices();
  return placed;
}

}  // namespace doppler
