#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "doppler/ids.h"
#include "doppler/program/expr/program.h"

namespace doppler {

// What one op computes, ready to run: everything that depends on shapes has been decided.
class BlockKernel {
 public:
  virtual ~BlockKernel() = default;
  // Says how much memory run() needs for its own use, from the boundary of a cache line on.
  virtual std::size_t work_bytes() const { return 0; }
  // `operands` lie as the kernel was made for, `output` is row-major.
  virtual void run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output,
                   std::byte* work) const = 0;
};

// A block of an einsum and how its operands lie in memory.
struct EinsumBlock {
  program::Shape sizes;                            // per label
  std::size_t rank = 0;                            // labels below it are the output's, the rest are reduced
  std::vector<std::vector<program::Index>> steps;  // by operand and label, in elements; 0 if it lacks the label
  std::vector<std::vector<std::uint32_t>> labels;  // by operand
  std::vector<program::DType> dtypes;              // by operand
  program::DType result = program::DType::f32;
  std::vector<program::Index> output_steps() const;  // by label; 0 if it is reduced
};

// Returns the dtype that can hold everything the einsum touches: complex if anything is, double if anything is. Throws
// InputError for dtypes without kernels.
program::DType widest_dtype(const program::Einsum& einsum, const EinsumBlock& block);

// The rest makes kernels of the host.

// Makes a matrix product of a product of two operands that is summed up; null if the einsum is none.
std::unique_ptr<BlockKernel> make_contraction(const program::Einsum& einsum, const EinsumBlock& block);
// Makes a copy of one operand's elements in another order, or several times; null if the einsum is more than that.
std::unique_ptr<BlockKernel> make_permutation(const program::Einsum& einsum, const EinsumBlock& block);
// Makes any einsum, computed element by element.
std::unique_ptr<BlockKernel> make_join(const program::Einsum& einsum, const EinsumBlock& block,
                                       const program::Variables& variables);
// Makes a block that has `value` up to the diagonal and `above` over it.
std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, program::DType dtype, const program::Rect& block);

}  // namespace doppler
