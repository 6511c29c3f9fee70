#include "doppler/program/expr/workloads.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/program/expr/library.h"

namespace doppler::program {
namespace {

constexpr Index kLargestCount = 100'000;  // layers or matrices: beyond it a typo, not a model

void check_count(std::string_view what, Index count, Index least) {
  if (count < least || count > kLargestCount)
    throw InputError(fmt::format("{}: found {}; required between {} and {}", what, count, least, kLargestCount));
}

// The weights of one block. Heads are split labels: width = heads · head size.
struct BlockWeights {
  Expr attention_norm, q, k, v, o, ffn_norm, w1, w2, w3;
};

class Llama {
 public:
  Llama(Program& program, const LlamaOptions& options)
      : p_(program), options_(options), head_(options.width / options.heads) {}

  void build() {
    const Index tokens = options_.decode ? 1 : options_.sequence;
    const Expr x = p_.input("x", {options_.batch, tokens, options_.heads, head_}, options_.dtype);
    const bool model = options_.part == LlamaOptions::Part::model;
    std::optional<Expr> mask;
    if (model && !options_.decode) mask = causal_mask(p_, options_.sequence, options_.dtype);
    const Expr table = rotary_table(tokens);
    Expr y = x;
    for (Index layer = 0; layer < options_.layers; ++layer) {
      const Program::Scope scope(p_, fmt::format("layer{}", layer));
      y = block(y, table, mask);
    }
    if (model) y = options_.train ? loss(y) : last_logits(y);
    p_.mark_output(y);
  }

 private:
  // A model keeps one table for all positions and selects the rows it needs; a block alone is given its rows.
  Expr rotary_table(Index tokens) {
    const Index first = options_.decode ? options_.sequence : 0;
    const bool whole = options_.part == LlamaOptions::Part::block;
    const Index rows = whole ? tokens : 2 * options_.sequence;
    const DType wide = options_.dtype == DType::f16 ? DType::f32 : options_.dtype;
    const Expr table = p_.input("rotary_table", {rows, head_ / 2}, complex_of(wide));
    return whole ? table : p_.select(table, {{first, 0}, {first + tokens, head_ / 2}}, "rotary_rows");
  }

  BlockWeights block_weights() {
    const Index h = options_.heads, f = options_.hidden;
    const auto weight = [&](const char* name, Shape shape) {
      return p_.weight(name, std::move(shape), options_.dtype);
    };
    return {weight("attention_norm_weight", {h, head_}),
            weight("wq", {h, head_, h, head_}),
            weight("wk", {h, head_, h, head_}),
            weight("wv", {h, head_, h, head_}),
            weight("wo", {h, head_, h, head_}),
            weight("ffn_norm_weight", {h, head_}),
            weight("w1", {f, h, head_}),
            weight("w2", {h, head_, f}),
            weight("w3", {f, h, head_})};
  }

  Expr block(Expr x, Expr table, std::optional<Expr> mask) {
    const BlockWeights w = block_weights();
    const Expr h = attend(x, w, table, mask);
    const Expr normal = norm("ffn_norm", h, w.ffn_norm);
    const Expr gate =
        p_.map({p_.einsum("bshd,fhd->bsf", {normal, w.w1}, {.name = "w1_x"})}, silu(Scalar::argument(0)), "silu");
    const Expr up = p_.einsum("bshd,fhd->bsf", {normal, w.w3}, {.name = "w3_x"});
    const Expr gated = p_.map({gate, up}, Scalar::argument(0) * Scalar::argument(1), "gate");
    const Expr down = p_.einsum("bsf,HEf->bsHE", {gated, w.w2}, {.name = "w2_x"});
    return p_.map({h, down}, Scalar::argument(0) + Scalar::argument(1), "ffn_residual");
  }

  Expr attend(Expr x, const BlockWeights& w, Expr table, std::optional<Expr> mask) {
    const Expr normal = norm("attention_norm", x, w.attention_norm);
    const auto project = [&](Expr weight, const char* name) {
      return p_.einsum("bshd,HEhd->bsHE", {normal, weight}, {.name = name});
    };
    const Expr q = project(w.q, "q"), k = project(w.k, "k"), v = project(w.v, "v");
    const auto turn = [&](Expr e, const char* name) {
      const Program::Scope scope(p_, name);
      return rotary(e, table);
    };
    const Expr turned_q = turn(q, "rotary_q"), turned_k = turn(k, "rotary_k");
    const Expr values = attention(turned_q, cached("k_cache", turned_k), cached("v_cache", v), mask);
    const Expr out = p_.einsum("bhsd,HEhd->bsHE", {values, w.o}, {.name = "o"});
    return p_.map({x, out}, Scalar::argument(0) + Scalar::argument(1), "attention_residual");
  }

  Expr cached(const char* name, Expr added) {
    if (!options_.decode) return added;
    const Expr cache = p_.input(name, {options_.batch, options_.sequence, options_.heads, head_}, options_.dtype);
    return p_.concat({cache, added}, 1, fmt::format("{}_next", name));
  }

  Expr norm(const char* name, Expr x, Expr weight) {
    const Program::Scope scope(p_, name);
    return rms_norm(x, weight, 2);
  }

  Expr head_weight() { return p_.weight("vocabulary", {options_.vocabulary, options_.heads, head_}, options_.dtype); }

  Expr last_logits(Expr x) {
    const Expr normal = norm("final_norm", x, p_.weight("final_norm_weight", {options_.heads, head_}, options_.dtype));
    Rect last = Rect::whole(normal.shape());
    last.begin[1] = last.end[1] - 1;
    const Expr token = p_.reshape_ones(p_.select(normal, last, "last_token"), {options_.batch, options_.heads, head_},
                                       "last_squeezed");
    return p_.einsum("bhd,vhd->bv", {token, head_weight()}, {.name = "logits"});
  }

  Expr loss(Expr x) {
    const Expr normal = norm("final_norm", x, p_.weight("final_norm_weight", {options_.heads, head_}, options_.dtype));
    const Expr logits = p_.einsum("bshd,vhd->bsv", {normal, head_weight()}, {.name = "logits"});
    return cross_entropy(logits, p_.input("targets", logits.shape(), options_.dtype));
  }

  Program& p_;
  const LlamaOptions& options_;
  Index head_;
};

Expr chain(Program& p, std::vector<Expr> row, const ChainOptions& options) {
  Rng rng(options.seed);
  const auto multiply = [&](Expr a, Expr b) { return p.einsum("ij,jk->ik", {a, b}, {.name = "product"}); };
  using Association = ChainOptions::Association;
  while (row.size() > 1) {
    if (options.association == Association::balanced) {
      std::vector<Expr> next;
      for (std::size_t i = 0; i + 1 < row.size(); i += 2) next.push_back(multiply(row[i], row[i + 1]));
      if (row.size() % 2 == 1) next.push_back(row.back());
      row = std::move(next);
      continue;
    }
    const std::size_t at =
        options.association == Association::left ? 0 : rng.below(static_cast<std::uint32_t>(row.size() - 1));
    row[at] = multiply(row[at], row[at + 1]);
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  return row[0];
}

}  // namespace

ChainOptions::Association parse_association(std::string_view text) {
  using Association = ChainOptions::Association;
  if (text == "published") return Association::published;
  if (text == "left") return Association::left;
  if (text == "balanced") return Association::balanced;
  if (text == "random") return Association::random;
  throw InputError(fmt::format("association: found '{}'; required published, left, balanced or random", text));
}

void chain_of_products(Program& p, const ChainOptions& options) {
  const Shape shape = {options.size, options.size};
  if (options.association == ChainOptions::Association::published) {
    const auto matrix = [&](const char* name) { return p.input(name, shape, options.dtype); };
    const Expr a = matrix("A"), b = matrix("B"), c = matrix("C"), d = matrix("D"), e = matrix("E");
    const Expr de = p.einsum("ij,jk->ik", {d, e}, {.name = "DE"});
    const Expr cde = p.einsum("ij,jk->ik", {c, de}, {.name = "CDE"});
    const Expr ab = p.einsum("ij,jk->ik", {a, b}, {.name = "AB"});
    p.mark_output(p.map({cde, ab}, Scalar::argument(0) + Scalar::argument(1), "sum"));
    return;
  }
  check_count("matrices", options.matrices, 2);
  std::vector<Expr> row;
  for (Index i = 0; i < options.matrices; ++i) row.push_back(p.input(fmt::format("M{}", i), shape, options.dtype));
  p.mark_output(chain(p, std::move(row), options));
}

void feed_forward(Program& p, const FfnnOptions& options) {
  check_count("layers", options.layers, 1);
  Expr y = p.input("x", {options.batch, options.input}, options.dtype);
  for (Index layer = 1; layer <= options.layers; ++layer) {
    const Index out = layer == options.layers ? options.output : options.hidden;
    const Expr w = p.weight(fmt::format("w{}", layer), {y.shape().back(), out}, options.dtype);
    y = p.einsum("ij,jk->ik", {y, w}, {.name = fmt::format("matmul{}", layer)});
    if (layer < options.layers) y = p.map({y}, relu(Scalar::argument(0)), fmt::format("relu{}", layer));
  }
  p.mark_output(options.train ? cross_entropy(y, p.input("targets", y.shape(), options.dtype)) : softmax(y));
}

LlamaOptions llama_model(std::string_view name) {
  struct Row {
    std::string_view name;
    Index width, heads, layers;
  };
  constexpr Row kRows[] = {{"7b", 4096, 32, 32}, {"13b", 5120, 40, 40}, {"30b", 6656, 52, 60}, {"65b", 8192, 64, 80}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    LlamaOptions options;
    options.width = row.width;
    options.heads = row.heads;
    options.layers = row.layers;
    options.hidden = (row.width * 8 / 3 + 255) / 256 * 256;
    return options;
  }
  throw InputError(fmt::format("model: found '{}'; required 7b, 13b, 30b or 65b", name));
}

void llama(Program& p, const LlamaOptions& options) {
  check_count("layers", options.layers, 1);
  if (options.heads < 1 || options.width < 1 || options.width % options.heads != 0 ||
      options.width / options.heads % 2 != 0)
    throw InputError(fmt::format("heads: found {} for width {}; required a head size that is whole and even",
                                 options.heads, options.width));
  if (options.decode && options.train)
    throw InputError("llama: found a decode step that trains; required one or the other");
  if (options.train && options.part == LlamaOptions::Part::block)
    throw InputError("llama: found training of a block, which has no loss; required the model");
  Llama(p, options).build();
}

}  // namespace doppler::program
