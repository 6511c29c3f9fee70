#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "doppler/kernels/array.h"
#include "doppler/kernels/backend.h"
#include "doppler/kernels/kernels.h"
#include "doppler/program/lower/lower.h"

namespace doppler {

// Where an op reads from: one of the first three.
struct DataSource {
  std::span<const std::byte> resident;  // an input of the program, in the host's memory
  std::optional<std::uint32_t> input;   // a tensor, by its number among the op's inputs
  std::size_t scratch = 0;              // an offset in the op's scratch memory
  std::size_t offset = 0;               // in bytes, from there on
};

// Everything that one op does, decided before the run: it gathers the operands that come in pieces, computes the block
// and cuts it into tensors. A formation instead folds its inputs straight into its tensors.
struct OpPlan {
  struct Gather {
    DataSource from;
    StridedCopy copy;
    std::size_t to = 0;  // offset in scratch memory; without a kernel the copies go to the block itself
  };
  struct Cut {
    std::uint32_t output;
    StridedCopy copy;
  };
  std::vector<Gather> gathers;
  std::vector<DataSource> operands;
  std::unique_ptr<BlockKernel> kernel;  // null if the op only moves data
  std::optional<std::uint32_t> whole;   // the output that is the whole block and therefore its place
  std::size_t block = 0;                // its place in scratch memory otherwise
  std::size_t work = 0;                 // the kernel's own place there
  std::size_t scratch_bytes = 0;
  std::size_t block_bytes = 0;
  std::vector<Cut> cuts;

  std::vector<std::uint32_t> partials;  // a formation's inputs, in the order of the deterministic sum
  std::vector<StridedFold> folds;       // by output; empty if the op is no formation

  // How the block goes to the array of the whole expression, if that is kept.
  std::optional<StridedCopy> to_result;
  std::optional<StridedFold> fold_to_result;
};

// Copies of the parts of a program's inputs that its ops read, one per part however many ops read it.
class ResidentInputs {
 public:
  explicit ResidentInputs(Arrays inputs) : whole_(std::move(inputs)) {}
  // Returns the elements of the region in row-major order.
  std::span<const std::byte> region(program::ExprId expr, const program::Rect& region);

 private:
  Arrays whole_;
  std::map<std::pair<program::ExprId, std::pair<program::Shape, program::Shape>>, AlignedBytes> parts_;
};

// What the ops of one program are planned from.
struct PlanContext {
  const program::Program& program;
  const program::Lowered& lowered;
  ResidentInputs& inputs;
  const program::Variables& variables;
  const Backend& backend;
};
// Plans one op. Throws InputError if its dtype has no kernels, or a variable no value.
OpPlan plan_op(const PlanContext& context, OpId op);

}  // namespace doppler
