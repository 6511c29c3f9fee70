#pragma once

#include <cstdint>
#include <map>

#include "doppler/kernels/onnx/kernel.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::model {

// Returns, by value of the model, what is there before the first run: what is fed in, weights, and what is computed of
// those alone. Inputs that are not `given`, and weights that the file does not have, are drawn by the seed. Values that
// ops write are nothing. Throws InputError if a given value is no input or of another type.
std::vector<Value> resident_values(const RunnableModel& model, const std::map<std::string, Tensor>& given,
                                   std::uint64_t seed, const KernelLibrary& library);

// Draws values: floats from a uniform distribution with a variance of one over `inner`; the integers 0 and 1, which are
// indices of nearly everything; vectors that hold weights between 0.5 and 1.5, since one may be a variance.
Tensor draw_tensor(const TensorType& type, bool weight, Index inner, std::uint64_t seed);

// The names that the body of a control-flow op sees: those of the values that the op reads.
class OuterNames final : public KernelLibrary::Outer {
 public:
  void add(const std::string& name, Value value) { values_[name] = std::move(value); }
  const Value* find(const std::string& name) const override;

 private:
  std::map<std::string, Value> values_;
};

// Runs one op on values, by name of what it reads beyond its inputs.
std::vector<Value> evaluate(const RunnableModel& model, const RunnableModel::Op& op, const std::vector<Value>& inputs,
                            const KernelLibrary& library);

}  // namespace doppler::model
