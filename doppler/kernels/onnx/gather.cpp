#include <algorithm>
#include <array>
#include <cstring>

#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/indexing.h"

namespace doppler::model {
namespace {

void require_indices(const Spec& spec, std::size_t input) { spec.require_element(input, {Element::i64, Element::i32}); }

// Walks along all elements of `shape` and keeps the sum of `steps` over the current index.
class IndexWalk {
 public:
  IndexWalk(const Shape& shape, const std::vector<Index>& steps) : shape_(shape), steps_(steps) {}
  Index offset() const { return offset_; }
  Index at(std::size_t dim) const { return at_[dim]; }
  void next() {
    for (std::size_t i = shape_.size(); i-- > 0;) {
      offset_ += steps_[i];
      if (++at_[i] < shape_[i]) return;
      offset_ -= steps_[i] * shape_[i];
      at_[i] = 0;
    }
  }

 private:
  const Shape& shape_;
  const std::vector<Index>& steps_;
  std::array<Index, kMostDimensions> at_{};
  Index offset_ = 0;
};

// How a value that is scattered meets the one that is there.
enum class Meeting : std::uint8_t { replace, add, multiply, larger, smaller };

Meeting meeting_of(const Spec& spec) {
  const std::string name = spec.text("reduction", "none");
  if (name == "none") return Meeting::replace;
  if (name == "add") return Meeting::add;
  if (name == "mul") return Meeting::multiply;
  if (name == "max") return Meeting::larger;
  if (name == "min") return Meeting::smaller;
  refuse(fmt::format("reduction '{}'", name), "none, add, mul, max or min");
}

template <typename T>
void meet(T& there, T value, Meeting meeting) {
  switch (meeting) {
    case Meeting::replace:
      there = value;
      return;
    case Meeting::add:
      there = static_cast<T>(there + value);
      return;
    case Meeting::multiply:
      there = static_cast<T>(there * value);
      return;
    case Meeting::larger:
      there = std::max(there, value);
      return;
    case Meeting::smaller:
      there = std::min(there, value);
      return;
  }
}

// Writes `count` elements at a place. Integers wrap, because the values go through bits.
void meet_elements(Element element, std::byte* there, const std::byte* values, Index count, Meeting meeting) {
  const std::size_t bytes = size_of(element);
  if (meeting == Meeting::replace) {
    std::memcpy(there, values, static_cast<std::size_t>(count) * bytes);
    return;
  }
  for (Index i = 0; i < count; ++i, there += bytes, values += bytes) {
    const auto through = [&](auto tag) {
      using T = decltype(tag);
      T old, value;
      load_elements(element, there, &old, 1);
      load_elements(element, values, &value, 1);
      if constexpr (std::is_same_v<T, std::int64_t>) {
        if (meeting == Meeting::add || meeting == Meeting::multiply) {
          auto bits = static_cast<std::uint64_t>(old);
          meet(bits, static_cast<std::uint64_t>(value), meeting);
          old = static_cast<T>(bits);
        } else {
          meet(old, value, meeting);
        }
      } else {
        meet(old, value, meeting);
      }
      store_elements(element, &old, there, 1);
    };
    switch (wide_of(element)) {
      case Element::f32:
        through(float{});
        break;
      case Element::f64:
        through(double{});
        break;
      case Element::u64:
        through(std::uint64_t{});
        break;
      default:
        through(std::int64_t{});
    }
  }
}

}  // namespace

std::unique_ptr<NodeKernel> make_gather(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  require_indices(spec, 1);
  spec.require_rank(0, 1);
  const Index axis = spec.axis(spec.integer("axis", 0), spec.rank(0));
  const AroundAxis dims = around(spec.shape(0), axis);
  Shape out(spec.shape(0).begin(), spec.shape(0).begin() + axis);
  out.insert(out.end(), spec.shape(1).begin(), spec.shape(1).end());
  out.insert(out.end(), spec.shape(0).begin() + axis + 1, spec.shape(0).end());
  const Index picks = spec.type(1).count();
  const Element kind = spec.element(1);
  const std::size_t row = static_cast<std::size_t>(dims.after) * size_of(spec.element(0));
  return make_function_kernel(spec, {{spec.element(0), out}}, [=](const Run& run) {
    const Indices indices(kind, run.inputs[1]);
    std::byte* to = run.outputs[0];
    for (Index b = 0; b < dims.before; ++b)
      for (Index i = 0; i < picks; ++i, to += row) {
        const Index at = checked_index(indices[i], dims.size, run.where);
        if (row > 0) std::memcpy(to, run.inputs[0] + static_cast<std::size_t>(b * dims.size + at) * row, row);
      }
  });
}

std::unique_ptr<NodeKernel> make_gather_elements(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  require_indices(spec, 1);
  spec.require_rank(0, 1);
  spec.require_rank(1, spec.rank(0), spec.rank(0));
  const Index axis = spec.axis(spec.integer("axis", 0), spec.rank(0));
  const auto along = static_cast<std::size_t>(axis);
  const Shape shape = spec.shape(1);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != along && shape[i] > spec.shape(0)[i])
      refuse(fmt::format("indices of shape {} into {}", program::to_string(shape), program::to_string(spec.shape(0))),
             "none larger but along the axis");
  std::vector<Index> steps = row_major_steps(spec.shape(0));
  const Index step = steps[along], size = spec.shape(0)[along];
  steps[along] = 0;
  const Index count = program::product(shape);
  const Element kind = spec.element(1);
  const std::size_t bytes = size_of(spec.element(0));
  return make_function_kernel(spec, {{spec.element(0), shape}}, [=](const Run& run) {
    const Indices indices(kind, run.inputs[1]);
    IndexWalk walk(shape, steps);
    for (Index i = 0; i < count; ++i, walk.next()) {
      const Index from = walk.offset() + checked_index(indices[i], size, run.where) * step;
      std::memcpy(run.outputs[0] + static_cast<std::size_t>(i) * bytes,
                  run.inputs[0] + static_cast<std::size_t>(from) * bytes, bytes);
    }
  });
}

std::unique_ptr<NodeKernel> make_gather_nd(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  require_indices(spec, 1);
  spec.require_rank(0, 1);
  spec.require_rank(1, 1);
  const Index batch_dims = spec.integer("batch_dims", 0), depth = spec.shape(1).back();
  const auto rank = static_cast<Index>(spec.rank(0));
  if (batch_dims < 0 || batch_dims >= static_cast<Index>(spec.rank(1)) || depth < 1 || batch_dims + depth > rank)
    refuse(fmt::format("indices of {} numbers after {} batch dimensions", depth, batch_dims),
           fmt::format("at most {} in all", rank));
  const Shape& data = spec.shape(0);
  Index batches = 1;
  for (Index i = 0; i < batch_dims; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (data[at] != spec.shape(1)[at]) refuse("other batch dimensions of data and indices", "the same");
    batches *= data[at];
  }
  Shape out(spec.shape(1).begin(), spec.shape(1).end() - 1);
  out.insert(out.end(), data.begin() + batch_dims + depth, data.end());
  const std::vector<Index> all_steps = row_major_steps(data);
  const std::vector<Index> steps(all_steps.begin() + batch_dims, all_steps.begin() + batch_dims + depth);
  const Shape sizes(data.begin() + batch_dims, data.begin() + batch_dims + depth);
  const Index per_batch = spec.type(1).count() / std::max<Index>(1, depth * batches);
  const Index row = steps.back(), batch = batches == 0 ? 0 : program::product(data) / batches;
  const std::size_t bytes = size_of(spec.element(0));
  const Element kind = spec.element(1);
  return make_function_kernel(spec, {{spec.element(0), out}}, [=](const Run& run) {
    const Indices indices(kind, run.inputs[1]);
    std::byte* to = run.outputs[0];
    const std::size_t row_bytes = static_cast<std::size_t>(row) * bytes;
    Index read = 0;
    for (Index b = 0; b < batches; ++b)
      for (Index i = 0; i < per_batch; ++i, to += row_bytes) {
        Index from = b * batch;
        for (std::size_t d = 0; d < steps.size(); ++d)
          from += checked_index(indices[read++], sizes[d], run.where) * steps[d];
        if (row_bytes > 0) std::memcpy(to, run.inputs[0] + static_cast<std::size_t>(from) * bytes, row_bytes);
      }
  });
}

std::unique_ptr<NodeKernel> make_scatter_elements(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  require_indices(spec, 1);
  spec.require_rank(0, 1);
  spec.require_element(2, {spec.element(0)});
  const Index axis = spec.axis(spec.integer("axis", 0), spec.rank(0));
  const auto along = static_cast<std::size_t>(axis);
  const Shape shape = spec.shape(1);
  if (spec.shape(2) != shape || shape.size() != spec.rank(0)) refuse("indices and updates of other shapes", "the same");
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != along && shape[i] > spec.shape(0)[i])
      refuse(fmt::format("indices of shape {} into {}", program::to_string(shape), program::to_string(spec.shape(0))),
             "none larger but along the axis");
  std::vector<Index> steps = row_major_steps(spec.shape(0));
  const Index step = steps[along], size = spec.shape(0)[along];
  steps[along] = 0;
  const Index count = program::product(shape);
  const Element kind = spec.element(1), element = spec.element(0);
  const std::size_t bytes = size_of(element), all = spec.type(0).bytes();
  const Meeting meeting = meeting_of(spec);
  return make_function_kernel(spec, {{element, spec.shape(0)}},
                              [=](const Run& run) {
                                if (all > 0 && run.outputs[0] != run.inputs[0])
                                  std::memcpy(run.outputs[0], run.inputs[0], all);
                                const Indices indices(kind, run.inputs[1]);
                                IndexWalk walk(shape, steps);
                                for (Index i = 0; i < count; ++i, walk.next()) {
                                  const Index to = walk.offset() + checked_index(indices[i], size, run.where) * step;
                                  meet_elements(element, run.outputs[0] + static_cast<std::size_t>(to) * bytes,
                                                run.inputs[2] + static_cast<std::size_t>(i) * bytes, 1, meeting);
                                }
                              },
                              {.in_place = 1});
}

std::unique_ptr<NodeKernel> make_scatter_nd(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  require_indices(spec, 1);
  spec.require_rank(0, 1);
  spec.require_rank(1, 1);
  spec.require_element(2, {spec.element(0)});
  const Shape& data = spec.shape(0);
  const Index depth = spec.shape(1).back();
  if (depth < 1 || depth > static_cast<Index>(data.size()))
    refuse(fmt::format("indices of {} numbers", depth), fmt::format("1 to {}", data.size()));
  Shape updates(spec.shape(1).begin(), spec.shape(1).end() - 1);
  updates.insert(updates.end(), data.begin() + depth, data.end());
  if (updates != spec.shape(2))
    refuse(fmt::format("updates of shape {}", program::to_string(spec.shape(2))), program::to_string(updates));
  const std::vector<Index> all_steps = row_major_steps(data);
  const std::vector<Index> steps(all_steps.begin(), all_steps.begin() + depth);
  const Shape sizes(data.begin(), data.begin() + depth);
  const Index rows = spec.type(1).count() / depth, row = steps.back();
  const Element kind = spec.element(1), element = spec.element(0);
  const std::size_t bytes = size_of(element), all = spec.type(0).bytes();
  const Meeting meeting = meeting_of(spec);
  return make_function_kernel(spec, {{element, data}},
                              [=](const Run& run) {
                                if (all > 0 && run.outputs[0] != run.inputs[0])
                                  std::memcpy(run.outputs[0], run.inputs[0], all);
                                const Indices indices(kind, run.inputs[1]);
                                Index read = 0;
                                for (Index r = 0; r < rows; ++r) {
                                  Index to = 0;
                                  for (std::size_t d = 0; d < steps.size(); ++d)
                                    to += checked_index(indices[read++], sizes[d], run.where) * steps[d];
                                  if (row > 0)
                                    meet_elements(element, run.outputs[0] + static_cast<std::size_t>(to) * bytes,
                                                  run.inputs[2] + static_cast<std::size_t>(r * row) * bytes, row,
                                                  meeting);
                                }
                              },
                              {.in_place = 1});
}

std::unique_ptr<NodeKernel> make_one_hot(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  const std::vector<double> depths = spec.known_reals(1);
  if (depths.size() != 1 || depths[0] < 0 || depths[0] > 1e15) refuse("no usable depth", "one number");
  const auto depth = static_cast<Index>(depths[0]);
  if (spec.type(2).count() != 2) refuse("values of another shape", "two: off and on");
  const Index axis = spec.axis(spec.integer("axis", -1), spec.rank(0) + 1);
  Shape out = spec.shape(0);
  out.insert(out.begin() + axis, depth);
  const AroundAxis dims = around(checked_shape(out), axis);
  const Element kind = spec.element(0);
  const std::size_t bytes = size_of(spec.element(2)), index_bytes = size_of(kind);
  return make_function_kernel(
      spec, {{spec.element(2), out}},
      [=](const Run& run) {
        for (Index b = 0; b < dims.before; ++b)
          for (Index d = 0; d < depth; ++d)
            for (Index a = 0; a < dims.after; ++a) {
              Index index = 0;
              load_elements(kind, run.inputs[0] + static_cast<std::size_t>(b * dims.after + a) * index_bytes, &index,
                            1);
              const bool on = index == d || (index < 0 && index + depth == d);  // an index outside turns nothing on
              std::memcpy(run.outputs[0] + static_cast<std::size_t>((b * depth + d) * dims.after + a) * bytes,
                          run.inputs[2] + (on ? bytes : 0), bytes);
            }
      },
      {.not_read = 1U << 1});
}

std::unique_ptr<NodeKernel> make_compress(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  spec.require_element(1, {Element::boolean});
  const std::vector<Index> condition = spec.known_integers(1);
  const bool flat = !spec.attributes().has("axis");
  const Index axis = flat ? 0 : spec.axis(spec.integer("axis", 0), spec.rank(0));
  const Shape in = flat ? Shape{spec.type(0).count()} : spec.shape(0);
  const AroundAxis dims = around(in, axis);
  std::vector<Index> picked;
  for (std::size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) continue;
    if (static_cast<Index>(i) >= dims.size)
      refuse(fmt::format("a condition for element {}", i), fmt::format("{} at most", dims.size));
    picked.push_back(static_cast<Index>(i));
  }
  Shape out = in;
  out[static_cast<std::size_t>(axis)] = static_cast<Index>(picked.size());
  const std::size_t row = static_cast<std::size_t>(dims.after) * size_of(spec.element(0));
  return make_function_kernel(spec, {{spec.element(0), out}},
                              [=](const Run& run) {
                                std::byte* to = run.outputs[0];
                                for (Index b = 0; b < dims.before; ++b)
                                  for (const Index i : picked) {
                                    if (row > 0)
                                      std::memcpy(to, run.inputs[0] + static_cast<std::size_t>(b * dims.size + i) * row,
                                                  row);
                                    to += row;
                                  }
                              },
                              {.not_read = 1U << 1});
}

std::unique_ptr<NodeKernel> make_reverse_sequence(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  spec.require_rank(0, 2);
  spec.require_element(1, {Element::i64});
  const Index batch_axis = spec.integer("batch_axis", 1), time_axis = spec.integer("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0)
    refuse(fmt::format("batch axis {} and time axis {}", batch_axis, time_axis), "0 and 1, or 1 and 0");
  const Index batches = spec.shape(0)[static_cast<std::size_t>(batch_axis)];
  const Index times = spec.shape(0)[static_cast<std::size_t>(time_axis)];
  if (spec.type(1).count() != batches) refuse("other lengths than batches", fmt::format("{}", batches));
  const std::size_t row = static_cast<std::size_t>(around(spec.shape(0), 1).after) * size_of(spec.element(0));
  const Index batch_step = batch_axis == 0 ? times : 1, time_step = time_axis == 0 ? batches : 1;
  return make_function_kernel(spec, {{spec.element(0), spec.shape(0)}}, [=](const Run& run) {
    if (row == 0) return;
    for (Index b = 0; b < batches; ++b) {
      const Index length = run.in<Index>(1)[b];
      if (length < 0 || length > times)
        throw InputError(fmt::format("{}: found length {}; required 0 to {}", run.where, length, times));
      for (Index t = 0; t < times; ++t) {
        const Index from = b * batch_step + (t < length ? length - 1 - t : t) * time_step;
        std::memcpy(run.outputs[0] + static_cast<std::size_t>(b * batch_step + t * time_step) * row,
                    run.inputs[0] + static_cast<std::size_t>(from) * row, row);
      }
    }
  });
}

}  // namespace doppler::model
