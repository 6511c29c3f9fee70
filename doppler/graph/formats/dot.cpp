#include "doppler/graph/formats/dot.h"

#include <array>
#include <iterator>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// Twelve pale colours that black text stays readable on; more devices repeat them.
constexpr std::array<std::string_view, 12> kColours = {"#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99",
                                                       "#cab2d6", "#ffff99", "#8dd3c7", "#fccde5",
                                                       "#bebada", "#ccebc5", "#80b1d3", "#d9d9d9"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c >= '\0' && c < ' ' ? ' ' : c;
  }
  return result;
}

}  // namespace

std::string graph_to_dot(const Graph& graph, std::span<const DeviceId> device_of_op) {
  DOPPLER_CHECK(device_of_op.empty() || device_of_op.size() == graph.op_count(), "{} devices for {} ops",
                device_of_op.size(), graph.op_count());
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, style=filled, fillcolor=white];\n",
                                 escaped(graph.title()));
  const auto out = std::back_inserter(text);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const std::string label = fmt::format("{}\\n{}", escaped(graph.name(op)), escaped(graph.kind(op)));
    if (device_of_op.empty())
      fmt::format_to(out, "  {} [label=\"{}\"];\n", op, label);
    else
      fmt::format_to(out, "  {} [label=\"{}\\ndevice {}\", fillcolor=\"{}\"];\n", op, label, device_of_op[op],
                     kColours[device_of_op[op] % kColours.size()]);
  }
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    for (const OpId consumer : graph.consumers(tensor))
      fmt::format_to(out, "  {} -> {};\n", graph.producer(tensor), consumer);
  return text + "}\n";
}

}  // namespace doppler
