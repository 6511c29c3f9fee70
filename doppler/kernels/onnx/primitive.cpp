#include "doppler/kernels/onnx/primitive.h"

#include <cstring>
#include <map>
#include <string>

#include "doppler/base/memory.h"
#include "doppler/kernels/array.h"

extern "C" void omp_set_num_threads(int);  // of libgomp, which libdnnl brings with it

namespace doppler::model {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

// A stream belongs to one thread.
dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(processor_engine());
  return stream;
}

Tag plain_tag(std::size_t rank) {
  constexpr std::array<Tag, 7> kTags = {Tag::a, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
  if (rank >= kTags.size()) refuse(fmt::format("{} dimensions", rank), "at most 6");
  return kTags[rank];
}

class PackedTensors : public PackedWeights {
 public:
  std::size_t bytes() const override {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [key, entry] : entries_) total += entry.bytes;
    return total;
  }

  PackedTensor find_or_make(const std::byte* memory, const Desc& to, const std::function<PackedTensor()>& make) {
    // A description is plain data; two of one format have the same bytes, because oneDNN clears them first.
    std::string key(sizeof(to.data), '\0');
    std::memcpy(key.data(), &to.data, sizeof(to.data));
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{memory, std::move(key)}];
    if (entry.tensor == nullptr) entry = {make(), to.get_size()};
    return entry.tensor;
  }

 private:
  struct Entry {
    PackedTensor tensor;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<const std::byte*, std::string>, Entry> entries_;
};

}  // namespace

// Every worker is one thread, so that OpenMP starts none. It has to know before a primitive is made, too: some remember
// how many threads there were then, and would wait for a second one on a core of their own.
const dnnl::engine& processor_engine() {
  thread_local const bool alone = (omp_set_num_threads(1), true);
  static_cast<void>(alone);
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Desc desc_of(const TensorType& type) {
  const std::size_t rank = type.shape.size();
  Tag tag = plain_tag(rank);
  if (type.layout != Layout::row_major) {
    if (rank < 3 || rank > 5) refuse(to_string(type), "3 to 5 dimensions in this layout");
    constexpr std::array<std::array<Tag, 3>, 3> kTags = {{{Tag::nwc, Tag::nhwc, Tag::ndhwc},
                                                          {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c},
                                                          {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c}}};
    tag = kTags[static_cast<std::size_t>(type.layout) - 1][rank - 3];
  }
  return {type.shape.empty() ? Shape{1} : type.shape, Type::f32, tag};
}

Desc any_desc(const Shape& shape) { return {shape, Type::f32, Tag::any}; }
Desc strided_desc(const Shape& shape, const std::vector<Index>& steps) { return {shape, Type::f32, steps}; }

dnnl::primitive_attr user_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void append_activation(dnnl::post_ops& ops, const Activation& activation) {
  using dnnl::algorithm;
  const auto append = [&](algorithm function, float alpha = 0, float beta = 0) {
    ops.append_eltwise(1.0F, function, alpha, beta);
  };
  switch (activation.function) {
    case Unary::count:
      return;
    case Unary::relu:
      return append(algorithm::eltwise_relu);
    case Unary::leaky_relu:
      return append(algorithm::eltwise_relu, activation.p);
    case Unary::clip:
      return append(algorithm::eltwise_clip, activation.p, activation.q);
    case Unary::hard_sigmoid:
      append(algorithm::eltwise_linear, activation.p, activation.q);
      return append(algorithm::eltwise_clip, 0, 1);
    case Unary::hard_swish:
      return append(algorithm::eltwise_hardswish);
    case Unary::sigmoid:
      return append(algorithm::eltwise_logistic);
    case Unary::silu:
      return append(algorithm::eltwise_swish, activation.p);
    case Unary::tanh:
      return append(algorithm::eltwise_tanh);
    case Unary::gelu:
      return append(algorithm::eltwise_gelu_erf);
    case Unary::gelu_tanh:
      return append(algorithm::eltwise_gelu_tanh);
    case Unary::elu:
      return append(algorithm::eltwise_elu, activation.p);
    case Unary::softplus:
      return append(algorithm::eltwise_soft_relu);
    default:
      throw InternalError("activation: found one without a primitive; required one of activation.cpp");
  }
}

bool is_reference(const char* implementation) {
  const std::string_view name(implementation);
  return name.starts_with("ref") || name.starts_with("simple:any") || name.find("ref_") != std::string_view::npos;
}

void PrimitiveCall::run(std::span<const std::byte* const> addresses) const {
  dnnl::stream& stream = thread_stream();
  std::unique_ptr<Memories> memories;
  {
    const std::lock_guard lock(idle_->mutex);
    if (!idle_->memories.empty()) {
      memories = std::move(idle_->memories.back());
      idle_->memories.pop_back();
    }
  }
  if (memories == nullptr) {
    memories = std::make_unique<Memories>();
    for (const Argument& argument : arguments_)
      memories->emplace(argument.name, dnnl::memory(argument.desc, processor_engine(), nullptr));
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    // oneDNN reads its inputs through the same kind of handle as it writes its outputs.
    memories->at(arguments_[i].name).set_data_handle(const_cast<std::byte*>(addresses[i]), stream);
  primitive_.execute(stream, *memories);
  stream.wait();
  const std::lock_guard lock(idle_->mutex);
  idle_->memories.push_back(std::move(memories));
}

PrimitiveCall make_reorder_call(const Desc& from, const Desc& to) {
  const dnnl::reorder::primitive_desc desc(processor_engine(), from, processor_engine(), to);
  return {dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

PackedTensor pack(const std::byte* memory, const Desc& from, const Desc& to, PackedWeights* packed) {
  const auto make = [&]() -> PackedTensor {
    auto bytes = std::make_shared<AlignedBytes>(to.get_size());
    const std::array<const std::byte*, 2> addresses = {memory, bytes->data()};
    make_reorder_call(from, to).run(addresses);
    return {bytes, bytes->data()};
  };
  auto* tensors = dynamic_cast<PackedTensors*>(packed);
  return tensors != nullptr ? tensors->find_or_make(memory, to, make) : make();
}

std::unique_ptr<PackedWeights> make_packed_tensors() { return std::make_unique<PackedTensors>(); }

}  // namespace doppler::model
