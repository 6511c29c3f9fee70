#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "doppler/base/file.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/learn/train/task.h"

namespace doppler::test {

struct PublishedGraph {
  std::string file;
  DeviceId devices;
};
inline std::vector<PublishedGraph> published_graphs() {
  return {{"chain_mm_112nodes", 4},          {"ffnn_192nodes", 4},
          {"transformer_block_215nodes", 4}, {"full_transformer_layer_261nodes", 4},
          {"8gpu_transformer_block", 8},     {"8gpu_full_transformer", 8}};
}

// Nothing where the data is absent.
inline std::unique_ptr<Task> published_task(const PublishedGraph& graph, Discipline discipline = Discipline::fifo) {
  const std::string path = std::string(DOPPLER_SHARED_DATA) + "/doppler_graphs/" + graph.file + ".txt";
  if (!std::filesystem::exists(path)) return nullptr;
  return make_task(graph.file,
                   Problem(parse_graph(path, read_file(path), {}).graph, uniform_machine(graph.devices),
                           Rules{.discipline = discipline}),
                   false);
}

}  // namespace doppler::test
