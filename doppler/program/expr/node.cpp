#include <algorithm>
#include <limits>

#include "doppler/base/error.h"
#include "doppler/program/expr/program.h"

namespace doppler::program {

std::string_view to_string(Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::sum:
      return "sum";
    case Aggregate::product:
      return "product";
    case Aggregate::max:
      return "max";
    case Aggregate::min:
      return "min";
  }
  throw InternalError("aggregate: unknown value; required one of Aggregate");
}

std::complex<double> fold(Aggregate aggregate, std::complex<double> a, std::complex<double> b) {
  switch (aggregate) {
    case Aggregate::sum:
      return a + b;
    case Aggregate::product:
      return a * b;
    case Aggregate::max:
      return a.real() < b.real() ? b : a;
    case Aggregate::min:
      return b.real() < a.real() ? b : a;
  }
  throw InternalError("aggregate: unknown value; required one of Aggregate");
}

std::complex<double> neutral(Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::sum:
      return 0;
    case Aggregate::product:
      return 1;
    case Aggregate::max:
      return -std::numeric_limits<double>::infinity();
    case Aggregate::min:
      return std::numeric_limits<double>::infinity();
  }
  throw InternalError("aggregate: unknown value; required one of Aggregate");
}

namespace {

// An output label that no input has.
bool has_broadcast_label(const Einsum& einsum) {
  std::vector<char> found(einsum.labels.size(), 0);
  for (const auto& operand : einsum.operands)
    for (const std::uint32_t label : operand) found[label] = 1;
  return std::find(found.begin(), found.end(), 0) != found.end();
}

std::string_view einsum_kind(const Einsum& einsum) {
  if (einsum.is_contraction()) return "matmul";
  const bool copies = einsum.operands.size() == 1 && einsum.join == Scalar::argument(0);
  if (einsum.aggregate) return copies ? "reduce" : "einsum";
  if (has_broadcast_label(einsum)) return "broadcast";
  return copies && !std::is_sorted(einsum.operands[0].begin(), einsum.operands[0].end()) ? "permute" : "elementwise";
}

// Dimensions larger than 1 correspond in order; the others are [0, 1).
Rect squeeze_region(const Shape& from, const Rect& block, const Shape& to) {
  Rect region = Rect::whole(to);
  std::size_t i = 0;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (to[k] == 1) continue;
    while (from[i] == 1) ++i;
    region.begin[k] = block.begin[i];
    region.end[k] = block.end[i];
    ++i;
  }
  return region;
}

Rect stencil_region(const Stencil& stencil, std::size_t operand, const Shape& input_shape, const Rect& block) {
  Rect region = Rect::whole(input_shape);
  for (std::size_t i = 0; i < input_shape.size(); ++i) {
    const Stencil::Span& span = stencil.operands[operand][i];
    if (span.extent == 0) continue;
    const Index begin = span.axis ? block.begin[*span.axis] : 0, end = span.axis ? block.end[*span.axis] : 1;
    const Index first = begin * span.step + span.offset;
    const Index last = (end - 1) * span.step + span.offset + span.extent - 1;
    region.begin[i] = std::clamp<Index>(first < 0 ? 0 : first / span.divisor, 0, input_shape[i]);
    region.end[i] = std::clamp<Index>(last < 0 ? 0 : last / span.divisor + 1, region.begin[i], input_shape[i]);
  }
  return region;
}

}  // namespace

bool Einsum::is_contraction() const {
  static const Scalar kProduct = Scalar::argument(0) * Scalar::argument(1);
  return operands.size() == 2 && aggregate == Aggregate::sum && join == kProduct && !has_broadcast_label(*this);
}

std::string_view kernel_kind(const Node& node) {
  struct Visitor {
    std::string_view operator()(const Input&) const { return "input"; }
    std::string_view operator()(const Einsum& einsum) const { return einsum_kind(einsum); }
    std::string_view operator()(const Formation&) const { return "formation"; }
    std::string_view operator()(const Select&) const { return "select"; }
    std::string_view operator()(const Concat&) const { return "concat"; }
    std::string_view operator()(const Fill&) const { return "fill"; }
    std::string_view operator()(const Squeeze&) const { return "squeeze"; }
    std::string_view operator()(const Complexer&) const { return "complexer"; }
    std::string_view operator()(const Stencil& stencil) const { return stencil.kind; }
  };
  return std::visit(Visitor{}, node.computation);
}

Shape Node::most_pieces() const {
  Shape result = join_shape();
  if (const Stencil* stencil = as<Stencil>())
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::min(result[i], stencil->most_pieces[i]);
  return result;
}

Flops block_flops(const Node& node, const Rect& block) {
  if (const Stencil* stencil = node.as<Stencil>())
    return stencil->flops * static_cast<Flops>(block.volume()) / static_cast<Flops>(product(node.shape));
  const Einsum* einsum = node.as<Einsum>();
  if (einsum == nullptr) return 0;
  const auto points = static_cast<Flops>(block.volume());
  const Flops folds = einsum->aggregate ? points - static_cast<Flops>(output_region(node, block).volume()) : 0;
  return einsum->join.flops() * points + folds;
}

Rect output_region(const Node& node, const Rect& block) {
  Rect result = block;
  result.begin.resize(node.shape.size());
  result.end.resize(node.shape.size());
  return result;
}

Rect operand_region(const Node& node, std::size_t operand, const Shape& input_shape, const Rect& block) {
  if (const Einsum* einsum = node.as<Einsum>()) {
    Rect region;
    for (const std::uint32_t label : einsum->operands[operand]) {
      region.begin.push_back(block.begin[label]);
      region.end.push_back(block.end[label]);
    }
    return region;
  }
  if (const Select* select = node.as<Select>()) return shifted(block, select->region.begin);
  if (const Concat* concat = node.as<Concat>()) {
    Shape offset(block.begin.size(), 0);
    offset[concat->axis] = concat->begins[operand];
    return intersect(shifted(block, offset, -1), Rect::whole(input_shape));
  }
  if (const Stencil* stencil = node.as<Stencil>()) return stencil_region(*stencil, operand, input_shape, block);
  if (node.as<Squeeze>() != nullptr) return squeeze_region(node.shape, block, input_shape);
  Rect region = block;
  if (node.as<Complexer>() != nullptr) {
    if (is_complex(node.dtype)) {
      region.begin.back() *= 2;
      region.end.back() *= 2;
    } else {  // an odd cut needs the whole number on either side of it
      region.begin.back() /= 2;
      region.end.back() = (region.end.back() + 1) / 2;
    }
  }
  return region;
}

}  // namespace doppler::program
