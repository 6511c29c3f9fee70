#include "doppler/learn/train/generated_tasks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doppler/graph/generate.h"

namespace doppler {
namespace {

double log_uniform(Rng& rng, double low, double high) { return std::exp(rng.uniform(std::log(low), std::log(high))); }

// A graph before its tensors have their final sizes.
struct Draft {
  std::vector<double> flops, bytes;  // Per op, and of its one tensor.
  std::vector<std::pair<OpId, OpId>> edges;

  OpId add(double op_flops, double op_bytes) {
    flops.push_back(op_flops);
    bytes.push_back(op_bytes);
    return static_cast<OpId>(flops.size() - 1);
  }
};

// Builds it with tensors of such sizes that moving along every edge takes `communication_ratio` times the computation.
Graph finish(const Draft& draft, std::string_view title, const GeneratedCosts& costs) {
  double computed = 0, moved = 0;
  for (const double flops : draft.flops) computed += flops;
  for (const auto& [src, dst] : draft.edges) moved += draft.bytes[src];
  const double scale = costs.communication_ratio * computed / costs.reference_flops_per_second *
                       costs.reference_bytes_per_second / std::max(moved, 1e-9);
  const auto ops = static_cast<OpId>(draft.flops.size());
  GraphBuilder builder(fmt::format("{}, {} ops", title, ops));
  for (OpId op = 0; op < ops; ++op) {
    OpSpec spec;
    spec.flops = draft.flops[op];
    builder.add_op(std::move(spec));
    builder.add_tensor(op, static_cast<Bytes>(scale * draft.bytes[op]));  // The tensor has the id of its op.
  }
  for (const auto& [src, dst] : draft.edges) builder.add_consumer(src, dst);
  return std::move(builder).build();
}

double draw_size(const GeneratedCosts& costs, Rng& rng) {
  return std::exp(costs.spread * rng.normal() - costs.spread * costs.spread / 2);
}

// A network without branches as exporters write it: most ops of a chain also read a parameter, a source that takes no
// time but has to be where its reader is; some read an op a little earlier too. There is nothing to gain by a second
// device.
Graph chain_with_parameters(OpId ops, const GeneratedCosts& costs, Rng rng) {
  constexpr double kParameters = 0.6, kSkips = 0.15;  // Per op of the chain.
  constexpr std::uint32_t kLongestSkip = 8;
  std::vector<OpId> chain;
  Draft draft;
  while (draft.flops.size() < ops) {
    const bool parameter = draft.flops.size() + 1 < ops && rng.uniform() < kParameters;
    if (parameter) draft.add(0, draw_size(costs, rng));
    const double flops = costs.mean_flops * draw_size(costs, rng);
    const OpId op = draft.add(flops, draw_size(costs, rng));
    if (parameter) draft.edges.emplace_back(op - 1, op);
    if (!chain.empty()) {
      draft.edges.emplace_back(chain.back(), op);
      const std::size_t back = 2 + rng.below(kLongestSkip);
      if (back <= chain.size() && rng.uniform() < kSkips) draft.edges.emplace_back(chain[chain.size() - back], op);
    }
    chain.push_back(op);
  }
  return finish(draft, "chain with parameters", costs);
}

// A network whose layers are cut into shards of equal cost. A shard reads the shard of the layer before with its own
// number, or also that one's neighbours (a convolution), or all (a layer that mixes everything); some layers are not
// cut, some read parameters, which are sources, and some a layer a little earlier too. Good placements keep a shard
// where its inputs are. The last layer is complete, so there may be a few ops more than asked for.
Graph sharded_network(OpId ops, const GeneratedCosts& costs, Rng rng) {
  enum class Reads : std::uint8_t { own, neighbours, all };
  constexpr double kParameters = 0.3, kSkips = 0.2;  // Per layer.
  constexpr std::size_t kLongestSkip = 6;
  const std::uint32_t shards = 2 + rng.below(15);
  const std::uint32_t mixing = rng.below(4);  // Of eight layers, so many read all.
  Draft draft;
  std::vector<std::vector<OpId>> layers;
  const auto read = [&](OpId op, std::size_t shard, const std::vector<OpId>& from, Reads reads) {
    // A layer of other width is read by all of it: its shards have no counterpart.
    if (from.size() != shards) reads = Reads::all;
    for (std::size_t other = 0; other < from.size(); ++other) {
      const std::size_t distance = other > shard ? other - shard : shard - other;
      if (reads == Reads::all || distance == 0 || (reads == Reads::neighbours && distance == 1))
        draft.edges.emplace_back(from[other], op);
    }
  };
  while (draft.flops.size() < ops) {
    const double flops = costs.mean_flops * draw_size(costs, rng), bytes = draw_size(costs, rng);
    const bool parameters = rng.uniform() < kParameters, skips = rng.uniform() < kSkips;
    const std::uint32_t dice = rng.below(8);
    const Reads reads = dice < mixing ? Reads::all : dice < 6 ? Reads::own : Reads::neighbours;
    const std::size_t width = rng.below(12) == 0 ? 1 : shards;  // Now and then a layer is not cut.
    const std::size_t before = layers.empty() ? 0 : layers.size() - 1;
    const std::size_t skipped = 1 + rng.below(kLongestSkip);
    const OpId parameter = parameters ? draft.add(0, draw_size(costs, rng)) : 0;
    std::vector<OpId> layer;
    for (std::size_t shard = 0; shard < width; ++shard) {
      const OpId op = draft.add(flops / static_cast<double>(width), bytes / static_cast<double>(width));
      if (parameters) draft.edges.emplace_back(parameter, op);
      if (!layers.empty()) read(op, shard, layers[before], width == 1 ? Reads::all : reads);
      if (skips && skipped <= before) read(op, shard, layers[before - skipped], width == 1 ? Reads::all : Reads::own);
      layer.push_back(op);
    }
    layers.push_back(std::move(layer));
  }
  return finish(draft, "network in shards", costs);
}

Graph random_graph(const GeneratedTaskOptions& options, Rng& rng) {
  const auto ops = static_cast<OpId>(log_uniform(rng, options.fewest_ops, options.most_ops));
  GeneratedCosts costs;
  costs.communication_ratio = log_uniform(rng, options.least_communication, options.most_communication);
  costs.spread = rng.uniform(0, 1.5);
  const double degree = rng.uniform(1, 3);
  const std::uint64_t seed = rng.bits();
  switch (rng.below(6)) {
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
    case 4:
      return sharded_network(ops, costs, Rng(seed));
    default:
      return generate_chain_of_blocks({.ops = ops,
                                       .width = static_cast<OpId>(log_uniform(rng, 1, 17)),
                                       .depth = 1 + rng.below(5),
                                       .seed = seed,
                                       .costs = costs});
  }
}

// Makes equal devices with equal links, or devices of up to four speeds in two islands with slower links between them;
// times vary on some.
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
  const double jitter = rng.uniform() < options.varied ? rng.uniform(0, options.most_jitter) : 0;
  return Machine(fmt::format("{} devices{}", count, unequal ? ", unequal" : ""), std::move(devices), std::move(links))
      .with_jitter(jitter);
}

}  // namespace

std::unique_ptr<Task> generate_task(const GeneratedTaskOptions& options, Rng rng) {
  Rules rules = options.rules;
  if (options.mixed_rules) {
    constexpr Discipline kDisciplines[] = {Discipline::fifo, Discipline::fifo, Discipline::priority,
                                           Discipline::ordered};
    constexpr Links kLinks[] = {Links::free, Links::free, Links::channels, Links::channels, Links::receiver};
    rules.discipline = kDisciplines[rng.below(std::size(kDisciplines))];
    rules.links = kLinks[rng.below(std::size(kLinks))];
  }
  Graph graph = random_graph(options, rng);
  Machine machine = random_machine(options, rng);
  std::string name = fmt::format("{} on {}", graph.title(), machine.name());
  return make_task(std::move(name), Problem(std::move(graph), std::move(machine), rules), false);
}

}  // namespace doppler
