#include "doppler/program/onnx/rewrite/passes.h"

namespace doppler::program {
namespace {

// Returns how far a Pad with zeros reaches before and after each dimension; nothing for any other Pad.
std::optional<std::vector<Index>> zero_pads(const Rewriting& graph, const onnx::NodeProto& pad) {
  if (string_attribute(pad, "mode", "constant") != "constant" || pad.input_size() > 3) return std::nullopt;
  if (pad.input_size() > 2 && !pad.input(2).empty() && graph.scalar(pad.input(2)) != 0.0) return std::nullopt;
  if (float_attribute(pad, "value", 0) != 0) return std::nullopt;
  return pad.input_size() > 1 ? graph.integers(pad.input(1)) : ints_attribute(pad, "pads");
}

}  // namespace

std::size_t pad_into_window(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index) {
    const bool pool = graph.is(index, "AveragePool");
    if (!pool && !graph.is(index, "Conv")) continue;
    const onnx::NodeProto& window = graph.node(index);
    const auto pad = graph.sole_writer(window.input(0), "Pad");
    if (!pad || string_attribute(window, "auto_pad", "NOTSET") != "NOTSET") continue;
    const auto shape = graph.shape(window.input(0));
    const auto reach = zero_pads(graph, graph.node(*pad));
    if (!shape || shape->size() < 3 || !reach || reach->size() != 2 * shape->size()) continue;
    const std::size_t space = shape->size() - 2;
    std::vector<Index> pads = ints_attribute(window, "pads").value_or(std::vector<Index>(2 * space, 0));
    bool fits = (*reach)[0] == 0 && (*reach)[1] == 0 && (*reach)[space + 2] == 0 && (*reach)[space + 3] == 0;
    for (std::size_t i = 0; i < space && fits; ++i) {
      const Index before = (*reach)[i + 2], after = (*reach)[space + 4 + i];
      // A pool that has padding of its own and leaves it out of the mean cannot take in zeros that count.
      fits = before >= 0 && after >= 0 &&
             (!pool || (pads[i] == 0 && pads[space + i] == 0 && int_attribute(window, "ceil_mode", 0) == 0));
      pads[i] += before;
      pads[space + i] += after;
    }
    if (!fits) continue;
    onnx::NodeProto fused = window;
    fused.set_input(0, graph.node(*pad).input(0));
    for (int i = 0; i < fused.attribute_size(); ++i)
      if (const std::string& name = fused.attribute(i).name(); name == "pads" || name == "count_include_pad")
        fused.mutable_attribute()->DeleteSubrange(i--, 1);
    *fused.add_attribute() = ints_value("pads", pads);
    if (pool) *fused.add_attribute() = int_value("count_include_pad", 1);
    graph.fuse({*pad, index}, std::move(fused));
    ++found;
  }
  return found;
}

}  // namespace doppler::program
