#include "doppler/learn/train/generated_tasks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doppler/graph/generate.h"

namespace doppler {
namespace {

double log_uniform(Rng& rng, double low, double high) { return std::exp(rng.uniform(std::log(low), std::log(high))); }

// A network without branches as exporters write it: most ops of a chain also read a parameter, a source that takes no
// time but has to be where its reader is; some read an op a little earlier too. There is nothing to gain by a second
// device.
Graph chain_with_parameters(OpId ops, const GeneratedCosts& costs, Rng rng) {
  constexpr double kParameters = 0.6, kSkips = 0.15;  // Per op of the chain.
  constexpr std::uint32_t kLongestSkip = 8;
  const auto draw = [&] { return std::exp(costs.spread * rng.normal() - costs.spread * costs.spread / 2); };
  std::vector<OpId> chain;
  std::vector<double> flops(ops), bytes(ops);
  std::vector<std::pair<OpId, OpId>> edges;
  double total_flops = 0, moved = 0;
  for (OpId op = 0; op < ops; ++op) {
    const bool parameter = op + 1 < ops && rng.uniform() < kParameters;
    if (parameter) {
      bytes[op] = draw();
      edges.emplace_back(op, op + 1);
      moved += bytes[op++];
    }
    flops[op] = costs.mean_flops * draw();
    bytes[op] = draw();
    total_flops += flops[op];
    if (!chain.empty()) {
      edges.emplace_back(chain.back(), op);
      moved += bytes[chain.back()];
      const std::size_t back = 2 + rng.below(kLongestSkip);
      if (back <= chain.size() && rng.uniform() < kSkips) {
        edges.emplace_back(chain[chain.size() - back], op);
        moved += bytes[chain[chain.size() - back]];
      }
    }
    chain.push_back(op);
  }
  const double scale = costs.communication_ratio * total_flops / costs.reference_flops_per_second *
                       costs.reference_bytes_per_second / std::max(moved, 1e-9);
  GraphBuilder builder(fmt::format("chain with parameters, {} ops", ops));
  for (OpId op = 0; op < ops; ++op) {
    OpSpec spec;
    spec.flops = flops[op];
    builder.add_op(std::move(spec));
    builder.add_tensor(op, static_cast<Bytes>(scale * bytes[op]));  // The tensor has the id of its op.
  }
  for (const auto& [src, dst] : edges) builder.add_consumer(src, dst);
  return std::move(builder).build();
}

Graph random_graph(const GeneratedTaskOptions& options, Rng& rng) {
  const auto ops = static_cast<OpId>(log_uniform(rng, options.fewest_ops, options.most_ops));
  GeneratedCosts costs;
  costs.communication_ratio = log_uniform(rng, options.least_communication, options.most_communication);
  costs.spread = rng.uniform(0, 1.5);
  const double degree = rng.uniform(1, 3);
  const std::uint64_t seed = rng.bits();
  switch (rng.below(5)) {
    case 0:
      return generate_layered({.ops = ops,
                               .width = static_cast<OpId>(log_uniform(rng, 1, 33)),
                               .degree = degree,
                               .seed = seed,
                               .costs = costs});
    case 1:
      return generate_random({.ops = ops, .degree = degree, .seed = seed, .costs = costs});
    case 2:
      return generate_series_parallel({.ops = ops, .parallel = rng.uniform(0.1, 0.8), .seed = seed, .costs = costs});
    case 3:
      return chain_with_parameters(ops, costs, Rng(seed));
    default:
      return generate_chain_of_blocks({.ops = ops,
                                       .width = static_cast<OpId>(log_uniform(rng, 1, 17)),
                                       .depth = 1 + rng.below(5),
                                       .seed = seed,
                                       .costs = costs});
  }
}

// Makes equal devices with equal links, or devices of up to four speeds in two islands with slower links between them.
Machine random_machine(const GeneratedTaskOptions& options, Rng& rng) {
  const auto count = static_cast<DeviceId>(log_uniform(rng, options.fewest_devices, options.most_devices + 1));
  const GeneratedCosts reference;
  const bool unequal = rng.uniform() < options.heterogeneous;
  const double between = unequal ? log_uniform(rng, 0.1, 1) : 1;
  std::vector<Device> devices(count);
  std::vector<DeviceId> island(count);
  for (DeviceId i = 0; i < count; ++i) {
    const double speed = unequal ? std::pow(2.0, -static_cast<double>(rng.below(4))) : 1;
    devices[i].name = fmt::format("device{}", i);
    devices[i].type = "accelerator";
    devices[i].rates = {{"*", "*", speed * reference.reference_flops_per_second}};
    island[i] = rng.below(2);
  }
  std::vector<Link> links(std::size_t{count} * count);
  for (DeviceId a = 0; a < count; ++a)
    for (DeviceId b = 0; b < count; ++b)
      links[a * count + b].bytes_per_second =
          reference.reference_bytes_per_second * (island[a] == island[b] ? 1 : between);
  return Machine(fmt::format("{} devices{}", count, unequal ? ", unequal" : ""), std::move(devices), std::move(links));
}

}  // namespace

std::unique_ptr<Task> generate_task(const GeneratedTaskOptions& options, Rng rng) {
  Rules rules = options.rules;
  if (options.mixed_disciplines) {
    constexpr Discipline kDisciplines[] = {Discipline::fifo, Discipline::fifo, Discipline::priority,
                                           Discipline::ordered};
    rules.discipline = kDisciplines[rng.below(std::size(kDisciplines))];
  }
  Graph graph = random_graph(options, rng);
  Machine machine = random_machine(options, rng);
  std::string name = fmt::format("{} on {}", graph.title(), machine.name());
  return make_task(std::move(name), Problem(std::move(graph), std::move(machine), rules), false);
}

}  // namespace doppler
