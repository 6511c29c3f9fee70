// The only file of the engine that sees libtorch. It names no CUDA function: libtorch's own interface to devices and
// streams reaches them, so that all of this compiles, and nearly all runs, with a libtorch that has none.

#include "doppler/kernels/aten/aten_backend.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <map>
#include <mutex>

#include "doppler/base/error.h"

namespace doppler {
namespace {

using at::Tensor;
using program::Aggregate;
using program::DType;
using program::Index;
using program::Scalar;
using Sizes = std::vector<Index>;

at::ScalarType aten_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
    case DType::c64:
      return at::kComplexFloat;
    case DType::c128:
      return at::kComplexDouble;
    default:
      throw InternalError(fmt::format("libtorch: found {}; required f32, f64, c64 or c128", program::to_string(dtype)));
  }
}

// Elements that are moved and not computed with.
at::ScalarType type_of_size(std::size_t bytes) {
  return bytes == 4 ? at::kInt : bytes == 8 ? at::kLong : at::kComplexDouble;
}

// A device and the queue of what it does. libtorch's processor does everything at once.
struct Unit {
  at::Device device;
  c10::Stream stream;
};

// While it lives, what the calling thread asks of libtorch goes to the unit, and nothing is kept for gradients.
class OnUnit {
 public:
  explicit OnUnit(const Unit& unit) : stream_(unit.stream) {}

 private:
  c10::InferenceMode inference_;
  c10::StreamGuard stream_;
};

Tensor view(const Unit& unit, const std::byte* data, at::ScalarType type, at::IntArrayRef sizes,
            at::IntArrayRef steps) {
  return at::for_blob(const_cast<std::byte*>(data), sizes)
      .strides(steps)
      .options(at::device(unit.device).dtype(type))
      .target_device(unit.device)  // else libtorch would ask the driver whose memory it is
      .make_tensor();
}
Tensor row_major(const Unit& unit, const std::byte* data, at::ScalarType type, const Sizes& sizes) {
  return view(unit, data, type, sizes, row_major_steps(sizes));
}

// The two arrays of a nest.
struct Views {
  Tensor from, to;
};
template <typename Nest>
Views views(const Unit& unit, const Nest& nest, at::ScalarType type, const std::byte* from, std::byte* to) {
  Sizes sizes, from_steps, to_steps;
  for (const Loop& loop : nest.loops()) {
    sizes.push_back(loop.size);
    from_steps.push_back(loop.steps[0]);
    to_steps.push_back(loop.steps[1]);
  }
  const auto bytes = static_cast<Index>(at::elementSize(type));
  return {view(unit, from + nest.from_offset() * bytes, type, sizes, from_steps),
          view(unit, to + nest.to_offset() * bytes, type, sizes, to_steps)};
}

// Complex numbers are ordered by their real parts.
Tensor order_of(const Tensor& x) { return x.is_complex() ? at::real(x) : x; }

void fold_into(Aggregate aggregate, Tensor& to, const Tensor& from) {
  switch (aggregate) {
    case Aggregate::sum:
      to.add_(from);
      return;
    case Aggregate::product:
      to.mul_(from);
      return;
    case Aggregate::max:
      to.copy_(at::where(at::lt(order_of(to), order_of(from)), from, to));
      return;
    case Aggregate::min:
      to.copy_(at::where(at::lt(order_of(from), order_of(to)), from, to));
      return;
  }
}

// Folds over the dimensions from `rank` on.
Tensor reduced(Aggregate aggregate, const Tensor& x, Index rank) {
  Sizes dimensions;
  for (Index i = rank; i < x.dim(); ++i) dimensions.push_back(i);
  if (aggregate == Aggregate::sum) return at::sum(x, dimensions);
  if (aggregate == Aggregate::product) return at::prod(x.flatten(rank), rank);
  if (!x.is_complex()) return aggregate == Aggregate::max ? at::amax(x, dimensions) : at::amin(x, dimensions);
  const Tensor flat = x.flatten(rank), order = at::real(flat);
  const Tensor place = aggregate == Aggregate::max ? order.argmax(rank, true) : order.argmin(rank, true);
  return flat.gather(rank, place).squeeze(rank);
}

void store(Tensor value, Tensor&& output) {
  if (value.is_complex() && !output.is_complex()) value = at::real(value);
  output.copy_(value);
}

class AtenBackend;

// A sum of products of two operands.
class AtenContraction final : public BlockKernel {
 public:
  AtenContraction(const AtenBackend& backend, const EinsumBlock& block);
  void run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output, std::byte*) const override;

 private:
  const AtenBackend& backend_;
  std::string equation_;
  std::vector<Sizes> sizes_, steps_;  // by operand and its own dimension
  Sizes output_;
  at::ScalarType type_;
};

// Any einsum: operands as tensors over all labels, with dimensions of one element where they lack a label, so that
// libtorch broadcasts them.
class AtenJoin final : public BlockKernel {
 public:
  AtenJoin(const AtenBackend& backend, const program::Einsum& einsum, const EinsumBlock& block,
           const program::Variables& variables);
  void run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output, std::byte*) const override;

 private:
  Tensor joined(const Unit& unit, std::span<const std::byte* const> operands) const;
  Tensor apply(const Scalar::Instruction& instruction, const std::vector<Tensor>& values, const Unit& unit) const;
  Tensor constant(const c10::Scalar& number, const Unit& unit) const {
    return at::full({}, number, at::device(unit.device).dtype(type_));
  }

  const AtenBackend& backend_;
  Scalar join_;
  std::vector<std::optional<c10::Scalar>> numbers_;  // by instruction: it depends on no operand
  std::vector<std::uint32_t> last_reader_;           // by instruction
  std::optional<Aggregate> aggregate_;
  EinsumBlock block_;
  std::vector<Sizes> sizes_;  // by operand and label
  Sizes output_;
  at::ScalarType type_;  // in which it computes
};

// `value` up to the diagonal, `above` over it.
class AtenFill final : public BlockKernel {
 public:
  AtenFill(const AtenBackend& backend, const program::Fill& fill, DType dtype, program::Rect block)
      : backend_(backend), fill_(fill), type_(aten_type(dtype)), block_(std::move(block)) {}
  void run(DeviceId device, std::span<const std::byte* const>, std::byte* output, std::byte*) const override;

 private:
  const AtenBackend& backend_;
  program::Fill fill_;
  at::ScalarType type_;
  program::Rect block_;
};

class AtenBackend final : public Backend {
 public:
  AtenBackend(AtenDevices kind, DeviceId devices) : kind_(kind) {
    const at::DeviceType type = kind == AtenDevices::cuda ? at::kCUDA : at::kCPU;
    const bool present = c10::impl::hasDeviceGuardImpl(type);
    const auto count = static_cast<DeviceId>(present ? c10::impl::getDeviceGuardImpl(type)->deviceCount() : 0);
    if (kind == AtenDevices::cuda && count < devices)
      throw InputError(fmt::format("--devices cuda: found {} GPUs; required {}, one for each device of the machine",
                                   count, devices));
    guard_ = c10::impl::getDeviceGuardImpl(type);
    at::set_num_threads(1);  // each device of the engine is one thread
    for (DeviceId i = 0; i < devices; ++i) {
      const at::Device device(type, kind == AtenDevices::cuda ? static_cast<at::DeviceIndex>(i) : -1);
      static_cast<void>(at::empty({1}, at::device(device)));  // libtorch prepares a device when it is first used
      units_.push_back({device, new_stream(device, false)});
    }
    scratch_.resize(devices);
  }

  const Unit& unit(DeviceId device) const { return units_[device]; }

  bool on_host() const override { return false; }  // not even on libtorch's processor, so that tests see the same

  std::byte* allocate(DeviceId device, Bytes bytes) const override {
    const OnUnit on(unit(device));
    Tensor block = at::empty({static_cast<Index>(bytes)}, at::device(unit(device).device).dtype(at::kByte));
    auto* const data = static_cast<std::byte*>(block.data_ptr());
    const std::lock_guard lock(blocks_mutex_);
    blocks_.emplace(data, std::move(block));
    return data;
  }

  void free(DeviceId, std::byte* data) const override {
    const std::lock_guard lock(blocks_mutex_);
    blocks_.erase(data);
  }

  // Copies have streams of their own, beside what the devices compute. Between GPUs libtorch copies on the source's
  // stream, and the destination's waits for it.
  void copy(const std::byte* from, Owner src, std::byte* to, Owner dst, Bytes bytes) const override {
    std::vector<c10::Stream> streams;
    for (const Owner owner : {src, dst})
      if (owner) streams.push_back(new_stream(unit(*owner).device, true));
    const c10::InferenceMode inference;
    const c10::MultiStreamGuard guard(streams);
    const Unit host{at::kCPU, c10::Stream(c10::Stream::DEFAULT, at::kCPU)};
    const Sizes sizes{static_cast<Index>(bytes)};
    row_major(dst ? unit(*dst) : host, to, at::kByte, sizes)
        .copy_(row_major(src ? unit(*src) : host, from, at::kByte, sizes));
    for (const c10::Stream& stream : streams) guard_->synchronizeStream(stream);
  }

  std::unique_ptr<BlockKernel> make_einsum(const program::Einsum& einsum, const EinsumBlock& block,
                                           const program::Variables& variables) const override {
    constexpr std::size_t kLetters = 26;  // of an equation
    if (einsum.is_contraction() && block.sizes.size() <= kLetters)
      return std::make_unique<AtenContraction>(*this, block);
    return std::make_unique<AtenJoin>(*this, einsum, block, variables);
  }
  std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, DType dtype,
                                         const program::Rect& block) const override {
    return std::make_unique<AtenFill>(*this, fill, dtype, block);
  }

  void run(DeviceId device, const StridedCopy& nest, const std::byte* from, std::byte* to) const override {
    const OnUnit on(unit(device));
    const Views arrays = views(unit(device), nest, type_of_size(nest.element_bytes()), from, to);
    arrays.to.copy_(arrays.from);
  }
  void run(DeviceId device, const StridedFold& nest, const std::byte* from, std::byte* to, bool first) const override {
    const OnUnit on(unit(device));
    Views arrays = views(unit(device), nest, aten_type(nest.dtype()), from, to);
    if (first)
      arrays.to.copy_(arrays.from);
    else
      fold_into(nest.aggregate(), arrays.to, arrays.from);
  }
  void finish(DeviceId device) const override { guard_->synchronizeStream(unit(device).stream); }

  std::byte* scratch(DeviceId device, Bytes bytes) const override {
    Tensor& memory = scratch_[device];
    if (!memory.defined() || static_cast<Bytes>(memory.numel()) < bytes) {
      const OnUnit on(unit(device));
      memory = at::empty({static_cast<Index>(bytes)}, at::device(unit(device).device).dtype(at::kByte));
    }
    return static_cast<std::byte*>(memory.data_ptr());
  }

 private:
  // libtorch's processor has only the one.
  c10::Stream new_stream(at::Device device, bool urgent) const {
    return kind_ == AtenDevices::cuda ? guard_->getStreamFromGlobalPool(device, urgent) : guard_->getStream(device);
  }

  AtenDevices kind_;
  const c10::impl::DeviceGuardImplInterface* guard_ = nullptr;
  std::vector<Unit> units_;              // by device
  mutable std::vector<Tensor> scratch_;  // by device
  mutable std::mutex blocks_mutex_;
  mutable std::map<std::byte*, Tensor> blocks_;
};

AtenContraction::AtenContraction(const AtenBackend& backend, const EinsumBlock& block)
    : backend_(backend),
      output_(block.sizes.begin(), block.sizes.begin() + static_cast<std::ptrdiff_t>(block.rank)),
      type_(aten_type(block.result)) {
  const auto letter = [](std::size_t label) { return static_cast<char>('a' + label); };
  for (std::size_t k = 0; k < block.labels.size(); ++k) {
    if (k > 0) equation_ += ',';
    sizes_.emplace_back();
    steps_.emplace_back();
    for (const std::uint32_t label : block.labels[k]) {
      equation_ += letter(label);
      sizes_.back().push_back(block.sizes[label]);
      steps_.back().push_back(block.steps[k][label]);
    }
  }
  equation_ += "->";
  for (std::size_t label = 0; label < block.rank; ++label) equation_ += letter(label);
}

void AtenContraction::run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output,
                          std::byte*) const {
  const Unit& unit = backend_.unit(device);
  const OnUnit on(unit);
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < operands.size(); ++k)
    tensors.push_back(view(unit, operands[k], type_, sizes_[k], steps_[k]));
  store(at::einsum(equation_, tensors), row_major(unit, output, type_, output_));
}

AtenJoin::AtenJoin(const AtenBackend& backend, const program::Einsum& einsum, const EinsumBlock& block,
                   const program::Variables& variables)
    : backend_(backend),
      join_(einsum.join),
      aggregate_(einsum.aggregate),
      block_(block),
      output_(block.sizes.begin(), block.sizes.begin() + static_cast<std::ptrdiff_t>(block.rank)),
      type_(aten_type(widest_dtype(einsum, block))) {
  for (std::size_t k = 0; k < block.labels.size(); ++k) {
    sizes_.emplace_back(block.sizes.size(), 1);
    for (const std::uint32_t label : block.labels[k]) sizes_[k][label] = block.sizes[label];
  }
  const auto code = join_.code();
  last_reader_.assign(code.size(), 0);
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    bool known = code[i].op != Scalar::Op::argument;
    for (std::size_t k = 0; k < Scalar::arity(code[i].op); ++k) {
      known = known && numbers_[code[i].in[k]];
      last_reader_[code[i].in[k]] = i;
    }
    numbers_.emplace_back();
    if (!known) continue;
    const std::complex<double> value = Scalar::from_code({code.begin(), code.begin() + i + 1}).evaluate({}, variables);
    numbers_.back() = at::isComplexType(type_) ? c10::Scalar(c10::complex<double>(value)) : c10::Scalar(value.real());
  }
}

Tensor AtenJoin::apply(const Scalar::Instruction& instruction, const std::vector<Tensor>& values,
                       const Unit& unit) const {
  const auto number = [&](std::size_t k) -> const std::optional<c10::Scalar>& { return numbers_[instruction.in[k]]; };
  const auto in = [&](std::size_t k) { return number(k) ? constant(*number(k), unit) : values[instruction.in[k]]; };
  switch (instruction.op) {
    case Scalar::Op::add:
      return number(0) ? at::add(in(1), *number(0)) : number(1) ? at::add(in(0), *number(1)) : at::add(in(0), in(1));
    case Scalar::Op::multiply:
      return number(0) ? at::mul(in(1), *number(0)) : number(1) ? at::mul(in(0), *number(1)) : at::mul(in(0), in(1));
    case Scalar::Op::power:
      return number(0) ? at::pow(*number(0), in(1)) : number(1) ? at::pow(in(0), *number(1)) : at::pow(in(0), in(1));
    case Scalar::Op::exp:
      return at::exp(in(0));
    case Scalar::Op::log:
      return at::log(in(0));
    case Scalar::Op::tanh:
      return at::tanh(in(0));
    case Scalar::Op::conjugate:
      return at::conj_physical(in(0));
    case Scalar::Op::convert:
      return in(0);  // computed in the widest dtype throughout
    case Scalar::Op::select:
      return at::where(at::lt(order_of(in(0)), order_of(in(1))), in(2), in(3));
    default:
      throw InternalError("libtorch: a source is no step; required an operation");
  }
}

Tensor AtenJoin::joined(const Unit& unit, std::span<const std::byte* const> operands) const {
  const auto code = join_.code();
  std::vector<Tensor> values(code.size());
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    if (numbers_[i]) continue;
    if (code[i].op == Scalar::Op::argument) {
      const std::size_t k = code[i].in[0];
      values[i] = view(unit, operands[k], aten_type(block_.dtypes[k]), sizes_[k], block_.steps[k]).to(type_);
      continue;
    }
    values[i] = apply(code[i], values, unit);
    for (std::size_t k = 0; k < Scalar::arity(code[i].op); ++k)
      if (last_reader_[code[i].in[k]] == i) values[code[i].in[k]].reset();
  }
  return numbers_.back() ? constant(*numbers_.back(), unit) : values.back();
}

void AtenJoin::run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output, std::byte*) const {
  const Unit& unit = backend_.unit(device);
  const OnUnit on(unit);
  Tensor value = joined(unit, operands);
  if (aggregate_) value = reduced(*aggregate_, value.expand(block_.sizes), static_cast<Index>(block_.rank));
  store(std::move(value), row_major(unit, output, aten_type(block_.result), output_));
}

void AtenFill::run(DeviceId device, std::span<const std::byte* const>, std::byte* output, std::byte*) const {
  const Unit& unit = backend_.unit(device);
  const OnUnit on(unit);
  const std::size_t rank = block_.begin.size();
  Tensor filled = row_major(unit, output, type_, block_.shape());
  filled.fill_(fill_.value);
  if (rank < 2) return;
  const auto along = [&](std::size_t axis) {
    return at::arange(block_.begin[axis], block_.end[axis], at::device(unit.device).dtype(at::kLong));
  };
  filled.masked_fill_(at::gt(along(rank - 1).unsqueeze(0), along(rank - 2).unsqueeze(1)), fill_.above);
}

}  // namespace

std::unique_ptr<Backend> make_aten_backend(AtenDevices kind, DeviceId devices) {
  return std::make_unique<AtenBackend>(kind, devices);
}

}  // namespace doppler
