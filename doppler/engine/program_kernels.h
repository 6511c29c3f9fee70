#pragma once

#include <vector>

#include "doppler/engine/array.h"
#include "doppler/engine/kernels.h"
#include "doppler/engine/op_plan.h"
#include "doppler/program/lower.h"

namespace doppler {

// The ops of a lowered program, computed for real: in the program's own dtypes (f32, f64 and their complex pairs), each
// op on the thread that calls. Everything that depends on shapes is prepared here, so that an op parses nothing, looks
// nothing up and, once every thread has its scratch memory, allocates nothing.
class ProgramKernels final : public Kernels {
 public:
  // `inputs` has a value for every input that the program reads, `variables` one for every variable. Throws InputError
  // if not, or if an expression has a dtype without kernels.
  ProgramKernels(const program::Program& program, const program::Lowered& lowered, Arrays inputs,
                 const program::Variables& variables = {});

  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;
  bool folds(OpId op) const override { return !plans_[op].folds.empty(); }
  void fold(OpId op, std::size_t input, bool first, const OpBuffers& buffers) override;

  // Whether ops that compute a part of an output or of a next value also write it into results(). Off, because it takes
  // time. Not during a run.
  void keep_results(bool keep);
  // By expression: the program's outputs and the next values of its updates, as the last run left them.
  const Arrays& results() const { return results_; }

 private:
  ResidentInputs inputs_;
  std::vector<OpPlan> plans_;  // by op
  std::size_t scratch_bytes_ = 0;
  // A result that can be kept.
  struct Result {
    program::ExprId expr;
    program::DType dtype;
    program::Shape shape;
    std::vector<OpId> ops;  // that compute it; none: it is an input
  };
  std::vector<Result> kept_;
  Arrays results_;
  std::vector<std::byte*> result_of_op_;  // null: not kept
};

}  // namespace doppler
