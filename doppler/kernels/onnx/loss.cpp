#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "doppler/kernels/onnx/special.h"

namespace doppler::model {
namespace {

struct Loss {
  Index batch = 1, classes = 1, space = 1;
  bool weighted = false, ignores = false;
  Index ignored = 0;
  enum class Reduction : std::uint8_t { none, sum, mean } reduction = Reduction::mean;
};

Loss read_loss(const Spec& spec) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  spec.require_rank(0, 2, kMostDimensions);
  spec.require_element(1, {Element::i64});
  const Shape& x = spec.shape(0);
  Shape target = x;
  target.erase(target.begin() + 1);
  if (spec.shape(1) != target)
    refuse(fmt::format("labels of {} for {}", program::to_string(spec.shape(1)), program::to_string(x)),
           program::to_string(target));
  Loss loss;
  loss.batch = x[0];
  loss.classes = x[1];
  loss.space = around(x, 1).after;
  loss.weighted = spec.has(2);
  if (loss.weighted && (spec.shape(2) != Shape{loss.classes} || spec.element(2) != spec.element(0)))
    refuse(fmt::format("weights of {}", to_string(spec.type(2))), fmt::format("[{}]", loss.classes));
  loss.ignores = spec.attributes().has("ignore_index");
  loss.ignored = spec.integer("ignore_index", 0);
  const std::string reduction = spec.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    refuse(fmt::format("reduction '{}'", reduction), "none, sum or mean");
  loss.reduction = reduction == "none"  ? Loss::Reduction::none
                   : reduction == "sum" ? Loss::Reduction::sum
                                        : Loss::Reduction::mean;
  return loss;
}

TensorType loss_type(const Spec& spec, const Loss& loss) {
  return {spec.element(0), loss.reduction == Loss::Reduction::none ? spec.shape(1) : Shape{}};
}

template <typename T>
void run_loss(const Loss& loss, const T* log_probabilities, const Index* labels, const T* weights, T* out,
              const std::string& where) {
  double total = 0, weight_sum = 0;
  for (Index b = 0; b < loss.batch; ++b)
    for (Index s = 0; s < loss.space; ++s) {
      const Index at = b * loss.space + s, label = labels[at];
      double value = 0;
      if (!loss.ignores || label != loss.ignored) {
        if (label < 0 || label >= loss.classes)
          throw InputError(fmt::format("{}: found label {}; required 0 to {}", where, label, loss.classes - 1));
        const double weight = loss.weighted ? static_cast<double>(weights[label]) : 1;
        value = -weight * static_cast<double>(log_probabilities[(b * loss.classes + label) * loss.space + s]);
        weight_sum += weight;
      }
      if (loss.reduction == Loss::Reduction::none) out[at] = static_cast<T>(value);
      total += value;
    }
  if (loss.reduction == Loss::Reduction::sum) *out = static_cast<T>(total);
  if (loss.reduction == Loss::Reduction::mean) *out = static_cast<T>(total / weight_sum);
}

}  // namespace

std::unique_ptr<NodeKernel> make_likelihood_loss(const Spec& spec, PackedWeights*) {
  const Loss loss = read_loss(spec);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {loss_type(spec, loss)}, [=](const Run& run) {
      run_loss(loss, run.in<T>(0), run.in<Index>(1), run.in<T>(2), run.out<T>(0), run.where);
    });
  });
}

std::unique_ptr<NodeKernel> make_cross_entropy_loss(const Spec& spec, PackedWeights*) {
  const Loss loss = read_loss(spec);
  std::vector<TensorType> outputs = {loss_type(spec, loss)};
  if (spec.used(1)) outputs.push_back({spec.element(0), spec.shape(0)});
  const auto count = static_cast<std::size_t>(spec.type(0).count());
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, outputs,
        [=](const Run& run) {
          T* logs = run.out<T>(1) != nullptr ? run.out<T>(1) : reinterpret_cast<T*>(run.scratch);
          for (Index b = 0; b < loss.batch; ++b)
            for (Index s = 0; s < loss.space; ++s) {
              const auto at = [&](Index c) { return (b * loss.classes + c) * loss.space + s; };
              double largest = -std::numeric_limits<double>::infinity(), sum = 0;
              for (Index c = 0; c < loss.classes; ++c)
                largest = std::max(largest, static_cast<double>(run.in<T>(0)[at(c)]));
              for (Index c = 0; c < loss.classes; ++c)
                sum += std::exp(static_cast<double>(run.in<T>(0)[at(c)]) - largest);
              for (Index c = 0; c < loss.classes; ++c)
                logs[at(c)] = static_cast<T>(static_cast<double>(run.in<T>(0)[at(c)]) - largest - std::log(sum));
            }
          run_loss(loss, static_cast<const T*>(logs), run.in<Index>(1), run.in<T>(2), run.out<T>(0), run.where);
        },
        {.scratch_bytes = count * sizeof(T)});
  });
}

// Counts n-grams of integers: each row of the input is a text.
std::unique_ptr<NodeKernel> make_tf_idf(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_rank(0, 1, 2);
  spec.require_element(0, {Element::i64});
  const auto need = [&](std::string_view name) {
    const auto list = spec.attributes().integers(name);
    if (!list) refuse(fmt::format("no {}", name), "it");
    return *list;
  };
  const std::vector<Index> counts = need("ngram_counts"), places = need("ngram_indexes"), pool = need("pool_int64s");
  const std::vector<float> weights = spec.attributes().reals("weights").value_or(std::vector<float>());
  const Index shortest = spec.integer("min_gram_length", 1), longest = spec.integer("max_gram_length", 1);
  const Index skips = spec.integer("max_skip_count", 0);
  const std::string mode = spec.text("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") refuse(fmt::format("mode '{}'", mode), "TF, IDF or TFIDF");
  struct Gram {
    std::vector<Index> words;
    Index place;
    float weight;
  };
  std::vector<Gram> grams;
  Index width = 0;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    const Index begin = counts[n], end = n + 1 < counts.size() ? counts[n + 1] : static_cast<Index>(pool.size());
    const auto length = static_cast<Index>(n) + 1;
    if (begin < 0 || end < begin || end > static_cast<Index>(pool.size()) || (end - begin) % length != 0)
      refuse(fmt::format("ngram_counts {}", program::to_string(counts)), "parts of the pool");
    for (Index i = begin; i < end; i += length) {
      const auto number = grams.size();
      if (number >= places.size() || places[number] < 0 || places[number] > 1 << 30)
        refuse("fewer indexes than n-grams, or wrong ones", "one for each");
      grams.push_back({std::vector<Index>(pool.begin() + i, pool.begin() + i + length), places[number],
                       number < weights.size() ? weights[number] : 1});
      width = std::max(width, places[number] + 1);
    }
  }
  const Index rows = spec.rank(0) == 2 ? spec.shape(0)[0] : 1, length = spec.shape(0).back();
  const Shape out = spec.rank(0) == 2 ? Shape{rows, width} : Shape{width};
  return make_function_kernel(spec, {{Element::f32, out}}, [=](const Run& run) {
    std::fill_n(run.out<float>(0), rows * width, 0.0F);
    for (Index r = 0; r < rows; ++r)
      for (const Gram& gram : grams) {
        const auto n = static_cast<Index>(gram.words.size());
        if (n < shortest || n > longest) continue;
        Index found = 0;
        for (Index skip = 0; skip <= (n == 1 ? 0 : std::min(skips, length)); ++skip)
          for (Index first = 0; first + (n - 1) * (skip + 1) < length; ++first) {
            bool same = true;
            for (Index w = 0; w < n && same; ++w)
              same = run.in<Index>(0)[r * length + first + w * (skip + 1)] == gram.words[static_cast<std::size_t>(w)];
            found += same ? 1 : 0;
          }
        float& value = run.out<float>(0)[r * width + gram.place];
        const auto count = static_cast<float>(found);
        value = mode == "TF" ? count : mode == "IDF" ? (found > 0 ? gram.weight : 0) : count * gram.weight;
      }
  });
}

}  // namespace doppler::model
