#pragma once

#include <mutex>
#include <vector>

#include "doppler/kernels/array.h"
#include "doppler/kernels/computing_kernels.h"
#include "doppler/kernels/op_plan.h"
#include "doppler/program/lower/lower.h"

namespace doppler {

// The ops of a lowered program, computed for real: in the program's own dtypes (f32, f64 and their complex pairs), by
// the backend; on the host each op on the thread that calls. Everything that depends on shapes is prepared here, so
// that an op parses nothing, looks nothing up and, once every thread has its scratch memory, allocates nothing.
class ProgramKernels final : public ComputingKernels {
 public:
  // `inputs` has a value for every input that the program reads, `variables` one for every variable. Throws InputError
  // if not, or if an expression has a dtype without kernels.
  ProgramKernels(const program::Program& program, const program::Lowered& lowered, Arrays inputs,
                 const program::Variables& variables = {}, std::shared_ptr<Backend> backend = make_host_backend());
  ~ProgramKernels() override;

  const DeviceMemory& memory() const override { return *backend_; }
  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;
  bool folds(OpId op) const override { return !plans_[op].folds.empty(); }
  void fold(OpId op, DeviceId device, std::size_t input, bool first, const OpBuffers& buffers) override;

  void keep_results(bool keep) override;
  void take_results(const std::function<void(const std::string& name, std::string npy)>& take) const override;
  // Returns, by expression, the program's outputs and the next values of its updates, as the last run left them.
  const Arrays& results() const { return results_; }

 private:
  void compute(const OpPlan& plan, OpId op, DeviceId device, const OpBuffers& buffers);
  void fold_one(OpId op, DeviceId device, std::size_t input, bool first, const OpBuffers& buffers);
  const std::byte* locate(const DataSource& source, DeviceId device, const OpBuffers& buffers,
                          const std::byte* scratch);
  const std::byte* on_device(DeviceId device, std::span<const std::byte> resident);
  const std::byte* on_host(DeviceId device, const std::byte* data, Bytes bytes) const;

  std::shared_ptr<Backend> backend_;
  ResidentInputs inputs_;
  // Inputs of the program in memories other than the host's; each is taken there when an op first reads it there.
  std::mutex uploads_mutex_;
  std::map<std::pair<DeviceId, const std::byte*>, std::byte*> uploads_;
  std::vector<OpPlan> plans_;  // by op
  std::size_t scratch_bytes_ = 0;
  // A result that can be kept.
  struct Result {
    program::ExprId expr;
    std::string name;
    program::DType dtype;
    program::Shape shape;
    std::vector<OpId> ops;  // those that compute it; none if it is an input
  };
  std::vector<Result> kept_;
  Arrays results_;
  std::vector<std::byte*> result_of_op_;  // null if it is not kept
};

}  // namespace doppler
