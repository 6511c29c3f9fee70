#include "doppler/program/onnx/make_runnable.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/convert.h"
#include "doppler/program/onnx/external_data.h"
#include "doppler/program/onnx/mapped_model.h"

namespace doppler::model {

ValueIndex RunnableModel::source_of(ValueIndex value) const {
  while (values[value].view_of != kAbsent) value = values[value].view_of;
  return value;
}

ValueIndex RunnableModel::find_input(std::string_view name) const {
  for (ValueIndex i = 0; i < values.size(); ++i)
    if ((values[i].origin == Origin::input || values[i].origin == Origin::weight) && values[i].name == name) return i;
  return kAbsent;
}

}  // namespace doppler::model

namespace doppler::program {
namespace {

using model::Element;
using model::RunnableModel;
using model::Tensor;
using model::TensorType;

// Returns the type as kernels know it; one without element type for text, sequences and the like.
TensorType type_of(const onnx::TypeProto& type) {
  if (!is_tensor(type) || !is_complete(type)) return {};
  constexpr std::int32_t kText = 8, kComplex64 = 14, kComplex128 = 15, kLast = 16;
  const std::int32_t element = element_of(type);
  if (element <= 0 || element > kLast || element == kText || element == kComplex64 || element == kComplex128) return {};
  return {static_cast<Element>(element), *dims_of(type)};
}

// Takes the data out of the message where it is bytes, so that it exists once.
Tensor take_tensor(onnx::TensorProto& proto, const std::string& what) {
  if (!proto.has_raw_data() || proto.raw_data().empty()) return model::to_tensor(proto, what);
  const TensorType type{model::element_of(proto.data_type(), what), Shape(proto.dims().begin(), proto.dims().end())};
  check_data(proto, what);
  const auto bytes = std::make_shared<const std::string>(std::move(*proto.mutable_raw_data()));
  return Tensor::view(type, bytes->data(), bytes);
}

// How many products the first op that reads the weight adds up to one element.
Index summed_up(const ModelOp& op, std::size_t slot, const Shape& dims) {
  if (dims.size() < 2 || slot == 0) return 1;
  if (op.rules->is == OperatorClass::convolution)
    return std::max<Index>(1, product(dims) / std::max<Index>(1, dims[0]));
  if (op.rules->is != OperatorClass::product) return 1;
  const bool flipped = int_attribute(*op.node, "transB", 0) != 0;
  return std::max<Index>(1, dims[dims.size() - (flipped ? 1 : 2)]);
}

// A file puts weights anywhere, and kernels read whole numbers: a known weakness. x86 reads numbers from any address,
// and copies would keep large weights twice; elsewhere, and where a sanitizer looks on, what is not aligned is copied.
bool may_be_read_at(const char* data, const model::TensorType& type) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
  constexpr bool kAnywhere = true;
#else
  constexpr bool kAnywhere = false;
#endif
  const auto count = static_cast<std::size_t>(std::max<Index>(1, type.count()));
  const std::size_t alignment = std::max<std::size_t>(1, type.bytes() / count);
  return kAnywhere || reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

class RunnableOfReading {
 public:
  RunnableOfReading(Reading reading, const std::vector<OpId>& op_of, std::shared_ptr<const MappedFile> file)
      : reading_(std::move(reading)), op_of_(op_of), file_(std::move(file)), files_(reading_.where) {
    if (file_ != nullptr) in_file_ = find_raw_data(file_->content());
  }

  std::shared_ptr<const RunnableModel> make(std::vector<RunnableModel::Block> blocks) {
    result_->blocks = std::move(blocks);
    result_->where = reading_.where;
    for (const auto& opset : reading_.model.opset_import())
      result_->opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = static_cast<int>(opset.version());
    find_needed();
    for (ValueId id = 0; id < reading_.values.size(); ++id) add_value(id);
    std::size_t ops = 0;
    for (const OpId op : op_of_) ops += op != kNone ? 1 : 0;
    result_->ops.resize(ops);
    for (std::size_t i = 0; i < reading_.ops.size(); ++i) {
      const ModelOp& op = reading_.ops[i];
      if (op_of_[i] != kNone)
        result_->ops[op_of_[i]] = to_op(op);
      else
        result_->values[op.outputs[0]].view_of = op.inputs[0];
    }
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (runs_[i] != 0) result_->static_ops.push_back(to_op(reading_.static_ops[i]));
    for (std::size_t i = 0; i < reading_.outputs.size(); ++i) {
      result_->outputs.push_back(reading_.outputs[i]);
      result_->output_names.push_back(reading_.model.graph().output(static_cast<int>(i)).name());
    }
    find_inner();
    return result_;
  }

 private:
  // Marks the values that ops and results read and the static nodes that compute some of them, with what those read.
  void find_needed() {
    needed_.resize(reading_.values.size());
    runs_.resize(reading_.static_ops.size());
    const auto need = [&](const std::vector<ValueId>& ids) {
      for (const ValueId id : ids)
        if (id != kNone) needed_[id] = 1;
    };
    for (const ModelOp& op : reading_.ops) need(op.inputs);
    need(reading_.outputs);
    const auto wanted = [&](ValueId id) { return id != kNone && needed_[id] != 0 && !reading_.values[id].constant; };
    for (std::size_t i = reading_.static_ops.size(); i-- > 0;) {
      const ModelOp& op = reading_.static_ops[i];
      runs_[i] = std::any_of(op.outputs.begin(), op.outputs.end(), wanted) ? 1 : 0;
      if (runs_[i] != 0) need(op.inputs);
    }
  }

  void add_value(ValueId id) {
    const ModelValue& value = reading_.values[id];
    RunnableModel::Value& made = result_->values.emplace_back();
    made.name = value.name;
    made.type = type_of(value.type);
    if (!value.is_static) {
      made.origin = value.producer != kNone ? RunnableModel::Origin::op : RunnableModel::Origin::input;
      return;
    }
    if (value.initializer == nullptr && !value.constant) {
      const auto given = reading_.names.find(value.name);
      const bool weight = given != reading_.names.end() && given->second == id && reading_.weights.contains(value.name);
      made.origin = weight ? RunnableModel::Origin::weight : RunnableModel::Origin::computed;
      return;
    }
    made.origin = RunnableModel::Origin::held;
    if (!needed_[id] || made.type.element == Element::none) return;
    const std::string what = fmt::format("{}: initializer '{}'", reading_.where, value.name);
    made.mapped = value.initializer != nullptr && value.initializer->data_location() == onnx::TensorProto::EXTERNAL;
    if (value.initializer == nullptr) {
      made.tensor = model::to_tensor(to_proto(*value.constant), what);
    } else if (made.mapped) {
      made.tensor = files_.read(*value.initializer, what);
    } else {
      // The reading is our own; only its type says that others do not change it.
      auto& initializer = const_cast<onnx::TensorProto&>(*value.initializer);
      made.mapped = look_in_file(initializer, made);
      if (!made.mapped) made.tensor = take_tensor(initializer, what);
    }
  }

  // Returns whether the bytes lie in the model's file, where the tensor then is; they are not needed elsewhere.
  bool look_in_file(onnx::TensorProto& initializer, RunnableModel::Value& value) const {
    const auto found = in_file_.find(initializer.name());
    if (found == in_file_.end()) return false;
    const std::string_view bytes = found->second;
    const bool same = bytes == initializer.raw_data();
    forget_pages(bytes.data(), bytes.size());
    if (!same || !may_be_read_at(bytes.data(), value.type)) return false;
    value.tensor = Tensor::view(value.type, bytes.data(), file_);
    delete initializer.release_raw_data();
    return true;
  }

  RunnableModel::Op to_op(const ModelOp& op) const {
    RunnableModel::Op made{
        .node = model::to_node(*op.node), .opset = op.opset, .inputs = op.inputs, .outputs = op.outputs};
    made.node.name = op.name;
    made.has_body = op.whole;
    return made;
  }

  // What an op adds up is what the weights are scaled for that its input was computed of.
  void find_inner() {
    const auto note = [&](ValueId id, Index inner) {
      if (id != kNone && result_->values[id].inner == 1) result_->values[id].inner = inner;
    };
    for (const ModelOp& op : reading_.ops)
      for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
        if (op.inputs[slot] != kNone && reading_.values[op.inputs[slot]].is_static)
          note(op.inputs[slot], summed_up(op, slot, result_->values[op.inputs[slot]].type.shape));
    for (auto op = reading_.static_ops.rbegin(); op != reading_.static_ops.rend(); ++op) {
      if (op->outputs.empty() || op->outputs[0] == kNone) continue;
      const RunnableModel::Value& made = result_->values[op->outputs[0]];
      for (const ValueId id : op->inputs)
        if (id != kNone && elements(reading_.values[id].type) == made.type.count()) note(id, made.inner);
    }
  }

  Reading reading_;
  const std::vector<OpId>& op_of_;
  std::shared_ptr<const MappedFile> file_;  // of the model itself, if it is mapped
  std::map<std::string, std::string_view> in_file_;
  ExternalData files_;
  std::vector<char> needed_;  // by value
  std::vector<char> runs_;    // by static op
  std::shared_ptr<RunnableModel> result_ = std::make_shared<RunnableModel>();
};

}  // namespace

std::shared_ptr<const RunnableModel> make_runnable(Reading reading, const std::vector<OpId>& op_of,
                                                   std::vector<RunnableModel::Block> blocks,
                                                   std::shared_ptr<const MappedFile> file) {
  return RunnableOfReading(std::move(reading), op_of, std::move(file)).make(std::move(blocks));
}

}  // namespace doppler::program
