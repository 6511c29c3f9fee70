#include <queue>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {
namespace {

void add_names_read(const onnx::NodeProto& node, const std::set<std::string>& inside, std::vector<std::string>& names);

// Adds what a body takes from outside. Recursion is as deep as the bodies nest, which protobuf's parser bounds.
void add_free_names(const onnx::GraphProto& body, std::set<std::string> inside, std::vector<std::string>& names) {
  for (const auto& input : body.input()) inside.insert(input.name());
  for (const auto& initializer : body.initializer()) inside.insert(initializer.name());
  for (const auto& initializer : body.sparse_initializer()) inside.insert(initializer.values().name());
  for (const onnx::NodeProto& node : body.node()) inside.insert(node.output().begin(), node.output().end());
  for (const onnx::NodeProto& node : body.node()) add_names_read(node, inside, names);
  for (const auto& output : body.output())
    if (!inside.contains(output.name())) names.push_back(output.name());
}

void add_names_read(const onnx::NodeProto& node, const std::set<std::string>& inside, std::vector<std::string>& names) {
  for (const std::string& name : node.input())
    if (!name.empty() && !inside.contains(name)) names.push_back(name);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_free_names(attribute.g(), inside, names);
    for (const onnx::GraphProto& body : attribute.graphs()) add_free_names(body, inside, names);
  }
}

// Follows producers that are themselves waiting until a node comes up again.
std::string describe_cycle(const Nodes& nodes, const std::vector<std::vector<int>>& waits_for,
                           const std::vector<int>& missing) {
  int at = 0;
  while (missing[static_cast<std::size_t>(at)] == 0) ++at;
  std::vector<int> path;
  std::vector<char> seen(missing.size(), 0);
  while (!seen[static_cast<std::size_t>(at)]) {
    seen[static_cast<std::size_t>(at)] = 1;
    path.push_back(at);
    for (const int producer : waits_for[static_cast<std::size_t>(at)])
      if (missing[static_cast<std::size_t>(producer)] > 0) at = producer;
  }
  std::string text;
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    text += (text.empty() ? "" : " -> ") + describe(nodes[*step]);
    if (*step == at) break;
  }
  return text;
}

}  // namespace

std::vector<std::string> names_read(const onnx::NodeProto& node) {
  std::vector<std::string> names;
  add_names_read(node, {}, names);
  return names;
}

std::vector<int> sort_nodes(const std::string& where, const Nodes& nodes,
                            const std::function<bool(const std::string&)>& is_outer) {
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].output())
      if (!name.empty() && (is_outer(name) || !producer.emplace(name, i).second))
        throw InputError(fmt::format("{}: {} writes tensor '{}', which is there already; required one writer", where,
                                     describe(nodes[i]), name));
  const auto count = static_cast<std::size_t>(nodes.size());
  std::vector<std::vector<int>> waits_for(count), readers(count);
  std::vector<int> missing(count, 0);
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& name : names_read(nodes[i])) {
      const auto found = producer.find(name);
      if (found == producer.end()) {
        if (is_outer(name)) continue;
        throw InputError(fmt::format("{}: {} reads tensor '{}'; required a node, input or initializer of that name",
                                     where, describe(nodes[i]), name));
      }
      waits_for[static_cast<std::size_t>(i)].push_back(found->second);
      readers[static_cast<std::size_t>(found->second)].push_back(i);
      ++missing[static_cast<std::size_t>(i)];
    }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[static_cast<std::size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int reader : readers[static_cast<std::size_t>(order.back())])
      if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
  }
  if (order.size() < count)
    throw InputError(
        fmt::format("{}: cycle {}; required an acyclic graph", where, describe_cycle(nodes, waits_for, missing)));
  return order;
}

}  // namespace doppler::program
