// Operators that find indices of elements.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "doppler/kernels/onnx/indexing.h"

namespace doppler::model {
namespace {

// NaN comes after all numbers, so that every order is total.
template <typename T>
bool comes_before(T a, T b) {
  if (a != a) return false;
  return b != b || a < b;
}

// A kernel whose outputs were computed when it was made, because their shapes depend on the data.
std::unique_ptr<NodeKernel> make_known(const Spec& spec, std::vector<Tensor> results) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < results.size(); ++i) {
    types.push_back(results[i].type);
    if (!spec.used(i)) types.back().element = Element::none;
  }
  return make_function_kernel(spec, types,
                              [results](const Run& run) {
                                for (std::size_t i = 0; i < results.size() && i < run.outputs.size(); ++i)
                                  if (run.outputs[i] != nullptr && results[i].data != nullptr)
                                    std::memcpy(run.outputs[i], results[i].data.get(), results[i].type.bytes());
                              },
                              {.not_read = 1});
}

Tensor indices_tensor(const std::vector<Index>& values) {
  Tensor tensor(Element::i64, {static_cast<Index>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<Index>());
  return tensor;
}

}  // namespace

std::unique_ptr<NodeKernel> make_non_zero(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const Tensor& data = spec.known(0);
  const Index count = data.type.count();
  const auto rank = static_cast<Index>(spec.rank(0));
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    std::vector<Index> found;
    for (Index i = 0; i < count; ++i)
      if (data.as<T>()[i] != T{}) found.push_back(i);
    const auto many = static_cast<Index>(found.size());
    Tensor result(Element::i64, checked_shape({rank, many}));
    const std::vector<Index> steps = row_major_steps(spec.shape(0));
    for (Index d = 0; d < rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      for (Index i = 0; i < many; ++i)
        result.as<Index>()[d * many + i] = found[static_cast<std::size_t>(i)] / steps[at] % spec.shape(0)[at];
    }
    return make_known(spec, {result});
  });
}

std::unique_ptr<NodeKernel> make_unique_elements(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const Tensor& data = spec.known(0);
  const bool flat = !spec.attributes().has("axis");
  const Index axis = flat ? 0 : spec.axis(spec.integer("axis", 0), spec.rank(0));
  const Shape in = flat ? Shape{data.type.count()} : spec.shape(0);
  const AroundAxis dims = around(in, axis);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const T* x = data.as<T>();
    const auto at = [&](Index slice, Index i) {
      return x[(i / dims.after * dims.size + slice) * dims.after + i % dims.after];
    };
    const Index length = dims.before * dims.after;
    const auto before = [&](Index a, Index b) {
      for (Index i = 0; i < length; ++i) {
        if (comes_before(at(a, i), at(b, i))) return true;
        if (comes_before(at(b, i), at(a, i))) return false;
      }
      return false;
    };
    std::vector<Index> order(static_cast<std::size_t>(dims.size));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), before);
    std::vector<std::vector<Index>> groups;  // equal slices, the first of which stands for them
    for (const Index slice : order) {
      if (groups.empty() || before(groups.back()[0], slice))
        groups.push_back({slice});
      else
        groups.back().push_back(slice);
    }
    if (spec.integer("sorted", 1) == 0) std::sort(groups.begin(), groups.end());
    std::vector<Index> first, inverse(static_cast<std::size_t>(dims.size)), counts;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      first.push_back(groups[g][0]);
      counts.push_back(static_cast<Index>(groups[g].size()));
      for (const Index slice : groups[g]) inverse[static_cast<std::size_t>(slice)] = static_cast<Index>(g);
    }
    Shape shape = in;
    shape[static_cast<std::size_t>(axis)] = static_cast<Index>(groups.size());
    Tensor values(spec.element(0), shape);
    const auto many = static_cast<Index>(groups.size());
    for (Index b = 0; b < dims.before; ++b)
      for (Index g = 0; g < many; ++g)
        for (Index a = 0; a < dims.after; ++a)
          values.as<T>()[(b * many + g) * dims.after + a] =
              x[(b * dims.size + first[static_cast<std::size_t>(g)]) * dims.after + a];
    std::vector<Tensor> results = {values, indices_tensor(first), indices_tensor(inverse), indices_tensor(counts)};
    results.resize(std::min<std::size_t>(4, std::max<std::size_t>(1, spec.node.outputs_used.size())));
    return make_known(spec, std::move(results));
  });
}

std::unique_ptr<NodeKernel> make_top_k(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  spec.require_rank(0, 1);
  const Index axis = spec.axis(spec.integer("axis", -1), spec.rank(0));
  const Index k = spec.node.opset < 10 ? spec.integer("k", -1) : spec.known_integer(1);
  const AroundAxis dims = around(spec.shape(0), axis);
  if (k < 0 || k > dims.size) refuse(fmt::format("the {} best of {}", k, dims.size), "at most all");
  const bool largest = spec.integer("largest", 1) != 0;
  Shape shape = spec.shape(0);
  shape[static_cast<std::size_t>(axis)] = k;
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const std::size_t scratch = static_cast<std::size_t>(dims.size) * sizeof(Index);
    return make_function_kernel(
        spec, {{spec.element(0), shape}, {Element::i64, shape}},
        [=](const Run& run) {
          auto* order = reinterpret_cast<Index*>(run.scratch);
          for (Index b = 0; b < dims.before; ++b)
            for (Index a = 0; a < dims.after; ++a) {
              const T* x = run.in<T>(0) + b * dims.size * dims.after + a;
              const auto value = [&](Index i) { return x[i * dims.after]; };
              // Of equal elements the first counts.
              const auto better = [&](Index i, Index j) {
                const bool first = largest ? comes_before(value(j), value(i)) : comes_before(value(i), value(j));
                const bool second = largest ? comes_before(value(i), value(j)) : comes_before(value(j), value(i));
                return first || (!second && i < j);
              };
              std::iota(order, order + dims.size, Index{0});
              std::partial_sort(order, order + k, order + dims.size, better);
              for (Index i = 0; i < k; ++i) {
                const Index to = (b * k + i) * dims.after + a;
                if (run.outputs[0] != nullptr) run.out<T>(0)[to] = value(order[i]);
                if (run.outputs.size() > 1 && run.outputs[1] != nullptr) run.out<Index>(1)[to] = order[i];
              }
            }
        },
        {.scratch_bytes = scratch, .not_read = 1U << 1});
  });
}

std::unique_ptr<NodeKernel> make_arg_max(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_rank(0, 1);
  const bool largest = spec.node.op_type == "ArgMax", last = spec.integer("select_last_index", 0) != 0;
  const Index axis = spec.axis(spec.integer("axis", 0), spec.rank(0));
  const AroundAxis dims = around(spec.shape(0), axis);
  if (dims.size == 0) refuse("an empty axis", "something to choose from");
  Shape shape = spec.shape(0);
  if (spec.integer("keepdims", 1) != 0)
    shape[static_cast<std::size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{Element::i64, shape}}, [=](const Run& run) {
      for (Index b = 0; b < dims.before; ++b)
        for (Index a = 0; a < dims.after; ++a) {
          const T* x = run.in<T>(0) + b * dims.size * dims.after + a;
          Index best = 0;
          for (Index i = 1; i < dims.size; ++i) {
            const T value = x[i * dims.after], held = x[best * dims.after];
            if (largest ? value > held : value < held)
              best = i;
            else if (last && value == held)
              best = i;
          }
          run.out<Index>(0)[b * dims.after + a] = best;
        }
    });
  });
}

}  // namespace doppler::model
