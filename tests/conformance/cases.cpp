#include "tests/conformance/cases.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "doppler/base/rng.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/trained_policy.h"
#include "tests/support/sanitized.h"

namespace doppler::test {
namespace {

constexpr Bytes kTensorBytes = 100;

// Machines below have devices of type "fast" and "slow"; some kinds of op run on "fast" only.
OpId add_op(GraphBuilder& builder, Seconds time, Bytes parameters = 0, bool anywhere = true, std::string group = {}) {
  OpSpec op;
  op.kind = anywhere ? "common" : "special";
  op.explicit_times = {{"fast", time}, {"slow", anywhere ? 2 * time : Costs::kNever}};
  op.parameter_bytes = parameters;
  op.group = std::move(group);
  return builder.add_op(std::move(op));
}

Graph one_op() {
  GraphBuilder builder("one op");
  add_op(builder, 3, 10);
  return std::move(builder).build();
}

Graph independent() {
  GraphBuilder builder("independent ops");
  for (int i = 0; i < 9; ++i) add_op(builder, 1 + i % 4, 10);
  return std::move(builder).build();
}

Graph chain_with_free_ops() {
  GraphBuilder builder("chain with ops and transfers that take no time");
  for (OpId op = 0; op < 10; ++op) {
    add_op(builder, op % 3, 5, op % 4 != 1);
    if (op > 0) builder.add_consumer(builder.add_tensor(op - 1, kTensorBytes, op % 2), op);
  }
  return std::move(builder).build();
}

// One tensor read by many, many tensors read by one, a tensor that nobody reads.
Graph fork_and_join() {
  GraphBuilder builder("fork and join");
  const OpId fork = add_op(builder, 2);
  const TensorId shared = builder.add_tensor(fork, kTensorBytes, 1.5);
  const OpId join = add_op(builder, 1);
  for (int i = 0; i < 7; ++i) {
    const OpId branch = add_op(builder, 3 + i % 2, 20);
    builder.add_consumer(shared, branch);
    builder.add_consumer(builder.add_tensor(branch, kTensorBytes, 0.5), join);
  }
  builder.add_tensor(join, kTensorBytes);
  return std::move(builder).build();
}

Graph random_with_groups() {
  Rng rng(17);
  GraphBuilder builder("random graph with groups");
  std::vector<TensorId> tensors;
  for (OpId op = 0; op < 40; ++op) {
    const bool grouped = op % 5 == 0;
    add_op(builder, rng.below(6), rng.below(30), grouped || op % 7 != 3, grouped ? fmt::format("g{}", op / 20) : "");
    std::vector<TensorId> reads;
    for (std::uint32_t i = op == 0 ? 0 : rng.below(4); i > 0; --i)
      reads.push_back(tensors[rng.below(static_cast<std::uint32_t>(tensors.size()))]);
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (const TensorId tensor : reads) builder.add_consumer(tensor, op);
    // Sometimes two outputs, sometimes bytes that the link has to move, sometimes an explicit time.
    for (std::uint32_t i = 0; i <= rng.below(2); ++i)
      tensors.push_back(rng.below(2) == 0 ? builder.add_tensor(op, 1 + rng.below(kTensorBytes))
                                          : builder.add_tensor(op, kTensorBytes, rng.below(5)));
  }
  return std::move(builder).build();
}

Graph nothing_but_zeros() {
  GraphBuilder builder("ops that cost nothing");
  for (OpId op = 0; op < 12; ++op) {
    add_op(builder, 0);
    if (op > 1) builder.add_consumer(builder.add_tensor(op / 2, kTensorBytes, 0), op);
  }
  return std::move(builder).build();
}

Bytes total_bytes(const Graph& graph) {
  Bytes total = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) total += graph.parameter_bytes(op);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) total += graph.bytes(tensor);
  return total;
}

Bytes most_bytes_of_an_op(const Graph& graph) {
  Bytes most = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    Bytes bytes = graph.parameter_bytes(op);
    for (const TensorId tensor : graph.inputs(op)) bytes += graph.bytes(tensor);
    for (const TensorId tensor : graph.outputs(op)) bytes += graph.bytes(tensor);
    most = std::max(most, bytes);
  }
  return most;
}

Machine with_links(Machine machine, const std::function<Link(DeviceId, DeviceId)>& link) {
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    devices.push_back(machine.device(src));
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst) links.push_back(link(src, dst));
  }
  return Machine(machine.name(), std::move(devices), std::move(links));
}

struct NamedMachine {
  std::string name;
  Machine machine;
};

std::vector<NamedMachine> machines_for(const Graph& graph) {
  const Link link{0.25, 50, 1, 1};
  const auto equal_links = [&](DeviceId, DeviceId) { return link; };
  const auto unequal_links = [&](DeviceId src, DeviceId dst) {
    return Link{0.1 * src, 20.0 * (dst + 1), 1 + dst % 2, src + dst == 1 ? 0.5 : 2.0};
  };
  // Not enough for everything, but for two thirds of it, or at least for the largest op.
  const Bytes memory = 1 + std::max(2 * total_bytes(graph) / 3, most_bytes_of_an_op(graph));
  return {
      {"one device", with_links(machine_of({"fast"}), equal_links)},
      {"two devices", with_links(machine_of({"fast", "fast"}), equal_links)},
      {"four devices", with_links(machine_of({"fast", "fast", "fast", "fast"}), equal_links)},
      {"fast and slow", with_links(machine_of({"slow", "fast", "slow"}), equal_links)},
      {"unequal links", with_links(machine_of({"fast", "fast", "fast"}), unequal_links)},
      {"little memory", with_links(machine_of({"fast", "fast"}, memory), equal_links)},
      {"two slots", with_links(machine_of({"fast", "fast"}, 0, 2), equal_links)},
  };
}

std::vector<Rules> all_rules(const Machine& machine) {
  std::vector<Rules> list;
  for (const Discipline discipline : {Discipline::fifo, Discipline::priority, Discipline::ordered, Discipline::random})
    for (const Links links : {Links::free, Links::channels, Links::receiver}) {
      Rules rules = rules_of(discipline);
      rules.links = links;
      rules.seed = 5;
      list.push_back(rules);
    }
  if (machine.device(0).memory == 0) {  // with barriers everything waits, and two thirds do not suffice
    Rules bulk;
    bulk.bulk_synchronous = true;
    list.push_back(bulk);
  }
  if (machine.device(0).slots == 1) {
    Rules published;
    published.ties = Ties::published;
    list.push_back(published);
  }
  return list;
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (Graph (*make)() :
       {one_op, independent, chain_with_free_ops, fork_and_join, random_with_groups, nothing_but_zeros}) {
    const Graph graph = make();
    for (const auto& [machine_name, machine] : machines_for(graph)) {
      for (const bool pinned : {false, true}) {
        // Op 0 can run anywhere, so it can be pinned to any device.
        const std::vector<Pin> pins = pinned ? std::vector<Pin>{{0, machine.device_count() - 1}} : std::vector<Pin>{};
        // Bounds do not depend on the rules.
        const LowerBound bound = lower_bound(Problem(graph, machine, {}, pins));
        for (const Rules& rules : all_rules(machine)) {
          std::string name =
              fmt::format("{} on {}, {}, {}{}{}{}", graph.title(), machine_name, to_string(rules.discipline),
                          to_string(rules.links), rules.bulk_synchronous ? ", bulk-synchronous" : "",
                          rules.ties == Ties::published ? ", published ties" : "", pinned ? ", pinned" : "");
          cases.push_back({std::move(name), Problem(graph, machine, rules, pins), bound});
        }
      }
    }
  }
  return cases;
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all = make_cases();
    if (!kSanitized) return all;
    // Every fifth: machines have 13 or 14 rules each, so that all rules and all machines are still met.
    std::vector<Case> some;
    for (std::size_t i = 0; i < all.size(); i += 5) some.push_back(std::move(all[i]));
    return some;
  }();
  return cases;
}

std::shared_ptr<const LearnedPolicy> policy_of(const Method& method) {
  static const auto shipped = std::make_shared<TrainedPolicy>("shipped", shipped_policy(), TrainedPolicyOptions{});
  constexpr std::size_t kSamples = 8;  // a policy that has learned nothing finds no more with the usual number
  static std::map<std::string_view, std::shared_ptr<const LearnedPolicy>> fresh;
  if (method.family != Method::Family::learned || method.name == shipped->name()) return shipped;
  auto& policy = fresh[method.name];
  if (!policy)
    policy = std::make_shared<TrainedPolicy>("fresh", file_of(*make_policy(usual_architecture(method.name), Rng(1))),
                                             TrainedPolicyOptions{.samples = kSamples});
  return policy;
}

}  // namespace doppler::test
