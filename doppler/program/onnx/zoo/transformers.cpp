#include "doppler/program/onnx/zoo/transformers.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/zoo/model_writer.h"

namespace doppler::program {
namespace {

using Value = ModelWriter::Value;
using Draw = ModelWriter::Draw;

Index or_else(Index given, Index usual) { return given == 0 ? usual : given; }

// Heads that have all of the width together.
void check_heads(Index width, Index heads, Index multiple) {
  if (heads < 1 || width % heads != 0 || width / heads % multiple != 0)
    throw InputError(fmt::format("heads: found {} of width {}; required a number that divides it{}", heads, width,
                                 multiple == 2 ? " into even parts" : ""));
}

// [batch, positions, width] as [batch, heads, positions, width per head].
Value split_heads(ModelWriter& net, const Value& x, Index heads) {
  const Shape& s = x.shape;
  return net.transpose(net.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

// Softmax(q kᵀ / √d + mask) v, with all heads beside one another again.
Value attend(ModelWriter& net, const Value& q, const Value& k, const Value& v, const Value* mask) {
  const Index batch = q.shape[0], heads = q.shape[1], positions = q.shape[2], each = q.shape[3];
  Value scores = net.matmul(q, net.transpose(k, {0, 1, 3, 2}));
  scores = net.node("Div", {scores, net.constant(std::sqrt(static_cast<float>(each)))}, scores.shape);
  if (mask != nullptr) scores = net.add(scores, *mask);
  const Value mixed = net.matmul(net.softmax(scores), v);
  return net.reshape(net.transpose(mixed, {0, 2, 1, 3}), {batch, positions, heads * each});
}

// Rows of a table, chosen by [batch, positions] or [positions].
Value look_up(ModelWriter& net, const std::string& name, Index rows, Index width, const Value& which) {
  const auto module = net.in(name);
  const Value table = net.weight("weight", {rows, width});
  Shape shape = which.shape;
  shape.push_back(width);
  return net.node("Gather", {table, which}, shape);
}

std::vector<Index> count_to(Index end) {
  std::vector<Index> result(static_cast<std::size_t>(end));
  for (Index i = 0; i < end; ++i) result[static_cast<std::size_t>(i)] = i;
  return result;
}

// ---- ViT ----

Value vit_attention(ModelWriter& net, const Value& x, Index heads) {
  const auto module = net.in("self_attention");
  const Shape& s = x.shape;
  const Index width = s[2];
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  const Value w = net.weight("in_proj_weight", {width, 3 * width}, Draw::normal, deviation);
  const Value projected = net.add(net.matmul(x, w), net.weight("in_proj_bias", {3 * width}, Draw::zeros));
  std::vector<Value> parts;
  for (Index i = 0; i < 3; ++i)
    parts.push_back(net.node("Slice",
                             {projected, net.constant(std::vector<Index>{i * width}),
                              net.constant(std::vector<Index>{(i + 1) * width}), net.constant(std::vector<Index>{2})},
                             s));
  for (Value& part : parts) part = split_heads(net, part, heads);
  return net.linear("out_proj", attend(net, parts[0], parts[1], parts[2], nullptr), width);
}

Value vit_block(ModelWriter& net, Value x, Index heads, Index hidden) {
  constexpr float kEpsilon = 1e-6F;
  x = net.add(vit_attention(net, net.layer_norm("ln_1", x, kEpsilon), heads), x);
  const Value normal = net.layer_norm("ln_2", x, kEpsilon);
  const auto module = net.in("mlp");
  const Value inner = net.gelu(net.linear("0", normal, hidden));
  return net.add(x, net.linear("3", inner, x.shape[2]));
}

// ---- BERT ----

constexpr float kBertEpsilon = 1e-12F;

Value bert_attention(ModelWriter& net, const Value& x, Index heads) {
  const auto module = net.in("attention");
  Value mixed;
  {
    const auto self = net.in("self");
    const Value q = split_heads(net, net.linear("query", x, x.shape[2]), heads);
    const Value k = split_heads(net, net.linear("key", x, x.shape[2]), heads);
    const Value v = split_heads(net, net.linear("value", x, x.shape[2]), heads);
    mixed = attend(net, q, k, v, nullptr);
  }
  const auto output = net.in("output");
  return net.layer_norm("LayerNorm", net.add(net.linear("dense", mixed, x.shape[2]), x), kBertEpsilon);
}

Value bert_layer(ModelWriter& net, const Value& x, Index heads, Index hidden) {
  const Value attended = bert_attention(net, x, heads);
  Value inner;
  {
    const auto module = net.in("intermediate");
    inner = net.gelu(net.linear("dense", attended, hidden));
  }
  const auto module = net.in("output");
  return net.layer_norm("LayerNorm", net.add(net.linear("dense", inner, x.shape[2]), attended), kBertEpsilon);
}

// ---- LLaMA ----

// x / √(mean of squares + ε) times a weight, node by node.
Value rms_norm(ModelWriter& net, const std::string& name, const Value& x) {
  const auto module = net.in(name);
  Shape one = x.shape;
  one.back() = 1;
  const Value squares = net.node("Pow", {x, net.constant(2.0F)}, x.shape);
  const Value mean = net.node("ReduceMean", {squares}, one, {attribute("axes", std::vector<Index>{-1})});
  const Value root = net.node("Sqrt", {net.add(mean, net.constant(1e-6F))}, one);
  return net.multiply(net.node("Div", {x, root}, x.shape), net.weight("weight", {x.shape.back()}, Draw::ones));
}

// The cosines and sines of rotary positions, [positions, width per head]; both halves are alike.
struct Rotation {
  Value cosines, sines;
};
Rotation rotation(ModelWriter& net, Index positions, Index each) {
  std::vector<float> cosines, sines;
  for (Index p = 0; p < positions; ++p)
    for (Index i = 0; i < each; ++i) {
      const double frequency =
          std::pow(10'000.0, -2.0 * static_cast<double>(i % (each / 2)) / static_cast<double>(each));
      cosines.push_back(static_cast<float>(std::cos(static_cast<double>(p) * frequency)));
      sines.push_back(static_cast<float>(std::sin(static_cast<double>(p) * frequency)));
    }
  return {net.constant({positions, each}, cosines), net.constant({positions, each}, sines)};
}

// x cos + (-second half, first half) sin.
Value rotate(ModelWriter& net, const Value& x, const Rotation& by) {
  const Index each = x.shape[3], last = std::numeric_limits<Index>::max();
  const Shape half = {x.shape[0], x.shape[1], x.shape[2], each / 2};
  const auto part = [&](Index begin, Index end) {
    return net.node("Slice",
                    {x, net.constant(std::vector<Index>{begin}), net.constant(std::vector<Index>{end}),
                     net.constant(std::vector<Index>{3})},
                    half);
  };
  const Value first = part(0, each / 2), second = net.node("Neg", {part(each / 2, last)}, half);
  const Value turned = net.node("Concat", {second, first}, x.shape, {attribute("axis", Index{3})});
  return net.add(net.multiply(x, by.cosines), net.multiply(turned, by.sines));
}

Value causal_mask(ModelWriter& net, Index positions) {
  net.check_room("mask", {positions, positions});
  std::vector<float> mask;
  for (Index row = 0; row < positions; ++row)
    for (Index column = 0; column < positions; ++column)
      mask.push_back(column > row ? std::numeric_limits<float>::lowest() : 0.0F);
  return net.constant({positions, positions}, mask);
}

Value llama_attention(ModelWriter& net, const Value& x, Index heads, const Rotation& positions, const Value& mask) {
  const auto module = net.in("self_attn");
  const Value q = split_heads(net, net.linear("q_proj", x, x.shape[2], false), heads);
  const Value k = split_heads(net, net.linear("k_proj", x, x.shape[2], false), heads);
  const Value v = split_heads(net, net.linear("v_proj", x, x.shape[2], false), heads);
  const Value mixed = attend(net, rotate(net, q, positions), rotate(net, k, positions), v, &mask);
  return net.linear("o_proj", mixed, x.shape[2], false);
}

Value llama_feed_forward(ModelWriter& net, const Value& x, Index hidden) {
  const auto module = net.in("mlp");
  const Value gate = net.linear("gate_proj", x, hidden, false);
  const Value swish = net.multiply(gate, net.node("Sigmoid", {gate}, gate.shape));
  return net.linear("down_proj", net.multiply(swish, net.linear("up_proj", x, hidden, false)), x.shape[2], false);
}

}  // namespace

std::string vit_b16(const ZooSizes& sizes) {
  constexpr Index kPatch = 16, kClasses = 1000;
  const Index image = or_else(sizes.image, 224), width = or_else(sizes.width, 768), heads = or_else(sizes.heads, 12);
  if (image < kPatch || image % kPatch != 0)
    throw InputError(fmt::format("image: found {}; required a multiple of {}", image, kPatch));
  check_heads(width, heads, 1);
  ModelWriter net("vit_b_16", sizes.weights);
  const Index side = image / kPatch, patches = side * side;
  Value x = net.input("input", {sizes.batch, 3, image, image});
  {
    const auto module = net.in("conv_proj");
    const double deviation = 1 / std::sqrt(3.0 * kPatch * kPatch);
    const Value w = net.weight("weight", {width, 3, kPatch, kPatch}, Draw::normal, deviation);
    x = net.node("Conv", {x, w, net.weight("bias", {width}, Draw::zeros)}, {sizes.batch, width, side, side},
                 {attribute("kernel_shape", std::vector<Index>{kPatch, kPatch}),
                  attribute("strides", std::vector<Index>{kPatch, kPatch})});
  }
  x = net.transpose(net.reshape(x, {sizes.batch, width, patches}), {0, 2, 1});
  const Value token = net.node(
      "Expand", {net.weight("class_token", {1, 1, width}), net.constant(std::vector<Index>{sizes.batch, 1, width})},
      {sizes.batch, 1, width});
  x = net.node("Concat", {token, x}, {sizes.batch, patches + 1, width}, {attribute("axis", Index{1})});
  {
    const auto encoder = net.in("encoder");
    x = net.add(x, net.weight("pos_embedding", {1, patches + 1, width}));
    const Index layers = or_else(sizes.layers, 12);
    for (Index i = 0; i < layers; ++i) {
      const auto list = net.in("layers");
      const auto module = net.in(fmt::format("encoder_layer_{}", i));
      x = vit_block(net, x, heads, or_else(sizes.hidden, 3072));
    }
    x = net.layer_norm("ln", x, 1e-6F);
  }
  x = net.node("Gather", {x, net.constant(std::vector<Index>{0})}, {sizes.batch, 1, width},
               {attribute("axis", Index{1})});
  const auto module = net.in("heads");
  net.output("output", net.linear("head", net.reshape(x, {sizes.batch, width}), kClasses));
  return net.bytes();
}

std::string bert_base(const ZooSizes& sizes) {
  const Index positions = or_else(sizes.sequence, 128), width = or_else(sizes.width, 768);
  const Index heads = or_else(sizes.heads, 12), longest = std::max<Index>(512, positions);
  check_heads(width, heads, 1);
  ModelWriter net("bert_base", sizes.weights);
  const Value tokens = net.input("input_ids", {sizes.batch, positions}, onnx::TensorProto::INT64);
  const Value types = net.input("token_type_ids", {sizes.batch, positions}, onnx::TensorProto::INT64);
  Value x;
  {
    const auto module = net.in("embeddings");
    const Value words = look_up(net, "word_embeddings", or_else(sizes.vocabulary, 30'522), width, tokens);
    const Value kinds = look_up(net, "token_type_embeddings", 2, width, types);
    const Value places = look_up(net, "position_embeddings", longest, width, net.constant(count_to(positions)));
    x = net.layer_norm("LayerNorm", net.add(net.add(words, kinds), places), kBertEpsilon);
  }
  {
    const auto encoder = net.in("encoder");
    for (Index i = 0; i < or_else(sizes.layers, 12); ++i) {
      const auto list = net.in("layer");
      const auto module = net.in(fmt::format("{}", i));
      x = bert_layer(net, x, heads, or_else(sizes.hidden, 3072));
    }
  }
  net.output("last_hidden_state", x);
  const auto pooler = net.in("pooler");
  Value first = net.node("Gather", {x, net.constant(std::vector<Index>{0})}, {sizes.batch, 1, width},
                         {attribute("axis", Index{1})});
  first = net.linear("dense", net.reshape(first, {sizes.batch, width}), width);
  net.output("pooler_output", net.node("Tanh", {first}, first.shape));
  return net.bytes();
}

std::string llama_decoder(const ZooSizes& sizes) {
  const Index positions = or_else(sizes.sequence, 512), width = or_else(sizes.width, 4096);
  const Index heads = or_else(sizes.heads, 32), vocabulary = or_else(sizes.vocabulary, 32'000);
  check_heads(width, heads, 2);
  ModelWriter net("llama_decoder", sizes.weights);
  const Value tokens = net.input("input_ids", {sizes.batch, positions}, onnx::TensorProto::INT64);
  const Rotation rotary = rotation(net, positions, width / heads);
  const Value mask = causal_mask(net, positions);
  Value x;
  {
    const auto model = net.in("model");
    x = look_up(net, "embed_tokens", vocabulary, width, tokens);
    for (Index i = 0; i < or_else(sizes.layers, 32); ++i) {
      const auto list = net.in("layers");
      const auto module = net.in(fmt::format("{}", i));
      x = net.add(x, llama_attention(net, rms_norm(net, "input_layernorm", x), heads, rotary, mask));
      x = net.add(x,
                  llama_feed_forward(net, rms_norm(net, "post_attention_layernorm", x), or_else(sizes.hidden, 11'008)));
    }
    x = rms_norm(net, "norm", x);
  }
  net.output("logits", net.linear("lm_head", x, vocabulary, false));
  return net.bytes();
}

}  // namespace doppler::program
