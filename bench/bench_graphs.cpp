#include "bench/bench_graphs.h"

#include <filesystem>

#include "doppler/graph/formats/read_graph.h"
#include "doppler/graph/generate.h"

namespace doppler::bench {

std::vector<BenchGraph> small_graphs() {
  const std::filesystem::path directory = std::filesystem::path(DOPPLER_SHARED_DATA) / "doppler_graphs";
  std::vector<BenchGraph> graphs;
  if (std::filesystem::exists(directory)) {
    for (const auto& [file, devices] : {std::pair("chain_mm_112nodes", 4u),
                                        {"ffnn_192nodes", 4u},
                                        {"transformer_block_215nodes", 4u},
                                        {"full_transformer_layer_261nodes", 4u},
                                        {"8gpu_transformer_block", 8u},
                                        {"8gpu_full_transformer", 8u}})
      graphs.push_back({file, read_graph((directory / (std::string(file) + ".txt")).string()).graph, devices});
    return graphs;
  }
  for (const OpId ops : {76u, 182u, 229u, 367u}) {
    ChainOfBlocksOptions options;
    options.ops = ops;
    graphs.push_back({"blocks_" + std::to_string(ops), generate_chain_of_blocks(options), ops > 300 ? 8u : 4u});
  }
  return graphs;
}

Graph layered_graph(OpId ops) {
  LayeredOptions options;
  options.ops = ops;
  options.width = 64;
  return generate_layered(options);
}

std::vector<Placement> random_placements(const Graph& graph, DeviceId devices, std::size_t count) {
  Rng rng(1);
  std::vector<Placement> placements(count);
  for (Placement& placement : placements)
    for (OpId op = 0; op < graph.op_count(); ++op) placement.device_of_op.push_back(rng.below(devices));
  return placements;
}

}  // namespace doppler::bench
