#pragma once

#include <string>

#include "doppler/load.h"
#include "doppler/placement.h"

namespace doppler {

// Where the repeated blocks of a model are, and what runs before and after them.
struct LayerPartition {
  std::string list;                        // "layers": the blocks are layers.0, layers.1, …
  std::vector<DeviceId> device_of;         // by block
  DeviceId first = 0, last = 0;            // of what runs before the first block and after the last, or of these blocks
  std::vector<std::string> before, after;  // modules outside of the list, outermost, in the order of their ops
};
// Throws InputError if the model has no list of at least two blocks, or if a block is on several devices. Of several
// lists it is the one with the most blocks.
LayerPartition layer_partition(const GraphFile& file, const Placement& placement, const Machine& machine);

// Flags of llama.cpp, one per line: -ot patterns of tensors (blk.N) and their buffers and, where devices have blocks in
// their order, the same as -ts.
std::string llama_cpp_flags(const LayerPartition& partition, const Machine& machine);

// The cut of the layers into consecutive stages as JSON: "vllm" (VLLM_PP_LAYER_PARTITION), "megatron"
// (--pipeline-model-parallel-layout), "torchtitan" (module_fqns_per_model_part). Throws InputError if a device has
// layers that are not consecutive: none of these can say that.
std::string pipeline_strings(const LayerPartition& partition, const Machine& machine);

}  // namespace doppler
