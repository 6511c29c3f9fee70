#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/expr/workloads.h"

// The boxes of the published graphs, inferred from their edges: with them every edge of all six is
// reproduced.

namespace doppler::program {
namespace {

// Expressions whose names end in `name` are cut as `cuts` says, e.g. "s2d2" or "H2,d2": pieces per label, 1
// where absent. `labels` names the dimensions of the join space, which for b = 1 keeps the published order.
struct Rule {
  std::string_view name, labels;
  std::array<std::string_view, 4> cuts;  // block at 4 and 8 parts, model at 4 and 8 parts
};

constexpr std::string_view kProjection = "bsHEhd";
constexpr Rule kRules[] = {
    {"mask", "st", {"", "", "s2", "s2t2"}},
    {"rotary_rows", "sd", {"", "", "", ""}},
    {"attention_norm.rms_norm.widen", "bshd", {"s2d2", "s2d4", "s2d2", "s2d4"}},
    {"attention_norm.rms_norm.square", "bshd", {"s2d2", "s2d4", "s2d2", "s2d4"}},
    {"attention_norm.rms_norm.sum.partial", "bshd", {"s2d2", "s2d4", "s2d2", "s2d4"}},
    {"attention_norm.rms_norm.mean", "bs", {"s2", "s2", "s2", "s2"}},
    {"attention_norm.rms_norm.rsqrt", "bs", {"s2", "s2", "s2", "s2"}},
    {"attention_norm.rms_norm.normalise", "bshd", {"s2d2", "s2d2", "s2d2", "s2d2"}},
    {"attention_norm.rms_norm.narrow", "bshd", {"s2d2", "s2d2", "s2d2", "s2d2"}},
    {"attention_norm.rms_norm.weight", "bshd", {"s2d2", "s2d2", "s2d2", "s2d2"}},
    {".q.partial", kProjection, {"H2,d2", "s2H2,d2", "s2H2", "s2H2,d2"}},
    {".k.partial", kProjection, {"s2H2", "s2H2,d2", "H2,d2", "s2H2,d2"}},
    {".v.partial", kProjection, {"s2H2", "s2H2,d2", "H2,d2", "s2H2,d2"}},
    {"rotary_q.rotary.widen", "bshd", {"h2", "s2h2", "s2h2", "s2h2"}},
    {"rotary_q.rotary.to_complex", "bshd", {"h2", "s2h2", "s2h2", "s2h2"}},
    {"rotary_q.rotary.turn", "bshd", {"h2", "s2h2", "s2h2", "s2h2"}},
    {"rotary_q.rotary.to_real", "bshd", {"h2", "s2h2", "s2h2", "s2h2"}},
    {"rotary_q.rotary.narrow", "bshd", {"h2", "s2h2", "s2h2", "s2h2"}},
    {"rotary_k.rotary.widen", "bshd", {"s2h2", "s2h2", "h2", "s2h2"}},
    {"rotary_k.rotary.to_complex", "bshd", {"s2h2", "s2h2", "h2", "s2h2"}},
    {"rotary_k.rotary.turn", "bshd", {"s2h2", "s2h2", "h2", "s2h2"}},
    {"rotary_k.rotary.to_real", "bshd", {"s2h2", "s2h2", "h2", "s2h2"}},
    {"rotary_k.rotary.narrow", "bshd", {"s2h2", "s2h2", "h2", "s2h2"}},
    {"attention.scores.partial", "bhstd", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"attention.scale", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"attention.mask", "bhst", {"", "", "h2s2", "h2s2t2"}},
    {"softmax.widen", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.max.partial", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.shift", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.exp", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.sum.partial", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.divide", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"softmax.narrow", "bhst", {"h2t2", "h2s2t2", "h2s2", "h2s2t2"}},
    {"attention.values.partial", "bhsdt", {"h2,t2", "h2s2,t2", "h2s2", "h2s2,t2"}},
    {".o.partial", kProjection, {"E2,h2", "s2E2,h2", "s2,h2", "s2E2,h2"}},
    {"attention_residual", "bshd", {"d2", "s2d2", "s2", "s2d2"}},
    {"ffn_norm.rms_norm.widen", "bshd", {"d2", "s2d2", "s2", "s2d2"}},
    {"ffn_norm.rms_norm.square", "bshd", {"d2", "s2d2", "s2", "s2d2"}},
    {"ffn_norm.rms_norm.sum.partial", "bshd", {"d2", "s2d2", "s2", "s2d2"}},
    {"ffn_norm.rms_norm.mean", "bs", {"", "s2", "s2", "s2"}},
    {"ffn_norm.rms_norm.rsqrt", "bs", {"", "s2", "s2", "s2"}},
    {"ffn_norm.rms_norm.normalise", "bshd", {"", "d2", "s2", "s2"}},
    {"ffn_norm.rms_norm.narrow", "bshd", {"", "d2", "s2", "s2"}},
    {"ffn_norm.rms_norm.weight", "bshd", {"", "d2", "s2", "s2"}},
    {"w1_x.partial", "bsfhd", {"f4", "f4,d2", "s2f2", "s2f4"}},
    {"silu", "bsf", {"f4", "f4", "s2f2", "s2f4"}},
    {"w3_x.partial", "bsfhd", {"f4", "f4,d2", "s2f2", "s2f4"}},
    {"gate", "bsf", {"f4", "f4", "s2f2", "s2f4"}},
    {"w2_x.partial", "bsHEf", {"f4", "E2,f4", "s2,f2", "s2,f4"}},
    {"ffn_residual", "bshd", {"", "d2", "s2", "s2"}},
    {"final_norm.rms_norm.widen", "bshd", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.square", "bshd", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.sum.partial", "bshd", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.mean", "bs", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.rsqrt", "bs", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.normalise", "bshd", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.narrow", "bshd", {"", "", "s2", "s2"}},
    {"final_norm.rms_norm.weight", "bshd", {"", "", "s2", "s2"}},
    {"last_token", "bshd", {"", "", "", ""}},
    {"last_squeezed", "bhd", {"", "", "", ""}},
    {"logits.partial", "bvhd", {"", "", "v4", "v8"}},
};

// The same for the two small graphs, published at 16 parts; `i0 j0 k` of a matrix product are i, k, j here.
struct SmallRule {
  std::string_view name, labels, cuts;
};
constexpr SmallRule kChainRules[] = {{"CDE.partial", "ikj", "i4k2j2"},
                                     {"DE.partial", "ikj", "i2k2j4"},
                                     {"AB.partial", "ikj", "i4k2j2"},
                                     {"sum", "ik", "i4k2"},
                                     // Other associations: every product like the published ones.
                                     {"product.partial", "ikj", "i4k2j2"}};
constexpr SmallRule kFfnnRules[] = {{"matmul1.partial", "ikj", "i4k4"},
                                    {"relu1", "ik", "i4k4"},
                                    {"matmul2.partial", "ikj", "i4j4"},
                                    {"relu2", "ik", "i4k4"},
                                    {"matmul3.partial", "ikj", "i4j4"},  // of a third layer
                                    {"max.partial", "ij", "i16"},
                                    {"shift", "ij", "i16"},
                                    {"exp", "ij", "i16"},
                                    {"sum.partial", "ij", "i16"},
                                    {"divide", "ij", "i16"}};

Box parse_cuts(std::string_view labels, std::string_view cuts) {
  Box box(labels.size(), 1);
  std::size_t label = 0;
  bool fresh = false;
  for (const char c : cuts) {
    if (c >= '0' && c <= '9') {
      box[label] = (fresh ? 0 : box[label] * 10) + (c - '0');
      fresh = false;
    } else if (c != ',') {
      label = labels.find(c);
      DOPPLER_CHECK(label < labels.size(), "cuts '{}' of labels '{}'", cuts, labels);
      fresh = true;
    }
  }
  return box;
}

// `rule_for(name)` gives labels and cuts, or nothing.
template <typename RuleFor>
Plan plan_by_name(const Program& program, RuleFor rule_for) {
  Plan plan = uncut(program);
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (node.as<Input>() != nullptr || node.as<Formation>() != nullptr) continue;
    const auto [labels, cuts] = rule_for(node.name);
    if (labels.empty())
      throw InputError(
          fmt::format("published plan: found '{}'; required an expression of the published graphs", node.name));
    plan[id] = parse_cuts(labels, cuts);
  }
  complete(program, plan);
  check(program, plan);
  return plan;
}

using LabelsAndCuts = std::pair<std::string_view, std::string_view>;

// The longest name wins, so that "attention.mask" is not "mask".
template <typename Rules>
const auto* matching_rule(const Rules& rules, std::string_view name) {
  decltype(std::begin(rules)) best = nullptr;
  name = name.substr(0, name.rfind('#'));  // the second of a name is called "name#2"
  for (const auto& rule : rules)
    if (name.ends_with(rule.name) && (best == nullptr || best->name.size() < rule.name.size())) best = &rule;
  return best;
}

template <typename Rules>
Plan small_plan(const Program& program, const Rules& rules) {
  return plan_by_name(program, [&](std::string_view name) {
    const auto* rule = matching_rule(rules, name);
    return rule == nullptr ? LabelsAndCuts{} : LabelsAndCuts{rule->labels, rule->cuts};
  });
}

}  // namespace

Plan published_plan(const Program& program, Family family, Index parts) {
  const bool small = family == Family::chain || family == Family::ffnn;
  if (small ? parts != 16 : parts != 4 && parts != 8)
    throw InputError(fmt::format("published plan: found {} parts; required {}", parts, small ? "16" : "4 or 8"));
  if (family == Family::chain) return small_plan(program, kChainRules);
  if (family == Family::ffnn) return small_plan(program, kFfnnRules);
  const std::size_t column = (family == Family::llama_model ? 2 : 0) + (parts == 8 ? 1 : 0);
  return plan_by_name(program, [&](std::string_view name) {
    const auto* rule = matching_rule(kRules, name);
    return rule == nullptr ? LabelsAndCuts{} : LabelsAndCuts{rule->labels, rule->cuts[column]};
  });
}

}  // namespace doppler::program
