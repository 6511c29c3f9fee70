#include "zero_shot_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/graph/generate.h"
#include "doppler/learn/train/generated_tasks.h"
#include "doppler/load.h"

namespace doppler {
namespace {

using Edges = std::vector<std::pair<OpId, OpId>>;

constexpr std::uint64_t kSeed = 20161;  // Fixed before any policy was trained that this program judges.
constexpr OpId kSizes[] = {200, 500, 1000, 2000, 5000};
constexpr std::size_t kRepetitions = 2;  // Each family and size is there twice, with other settings.

std::filesystem::path shared_data() { return DOPPLER_SHARED_DATA; }

// Structures that no generator of the trainings makes. Ids are in topological order; the number of ops is near the one
// asked for.

// Left-looking Cholesky factorisation of a matrix of tiles: an op per tile and update.
Edges cholesky(OpId ops) {
  const auto tiles = static_cast<OpId>(std::lround(std::cbrt(6.0 * ops) - 1));
  Edges edges;
  std::vector<OpId> last(std::size_t{tiles} * tiles, 0);  // The op that wrote a tile last.
  std::vector<char> written(last.size(), 0);
  OpId next = 0;
  const auto update = [&](std::size_t tile, std::initializer_list<std::size_t> read) {
    const OpId op = next++;
    if (written[tile]) edges.emplace_back(last[tile], op);
    for (const std::size_t other : read) edges.emplace_back(last[other], op);
    last[tile] = op;
    written[tile] = 1;
  };
  for (std::size_t k = 0; k < tiles; ++k) {
    update(k * tiles + k, {});
    for (std::size_t i = k + 1; i < tiles; ++i) update(i * tiles + k, {k * tiles + k});
    for (std::size_t i = k + 1; i < tiles; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) {
        if (i == j)
          update(i * tiles + j, {i * tiles + k});
        else
          update(i * tiles + j, {i * tiles + k, j * tiles + k});
      }
  }
  return edges;
}

// Cells in a row, step by step; each reads itself and its neighbours of the step before.
Edges stencil(OpId ops) {
  const auto width = static_cast<OpId>(std::lround(std::sqrt(ops / 2.0)));
  const OpId steps = ops / width;
  Edges edges;
  for (OpId step = 1; step < steps; ++step)
    for (OpId cell = 0; cell < width; ++cell)
      for (OpId from = cell > 0 ? cell - 1 : 0; from <= std::min(cell + 1, width - 1); ++from)
        edges.emplace_back((step - 1) * width + from, step * width + cell);
  return edges;
}

// The butterfly of a fast Fourier transform; several side by side where one would be too small.
Edges butterfly(OpId ops) {
  OpId width = 8, depth = 4;
  while (2 * width * (depth + 1) <= ops) width *= 2, ++depth;
  Edges edges;
  OpId first = 0;
  for (OpId copy = 0; copy < std::max<OpId>(1, ops / (width * depth)); ++copy, first += width * depth)
    for (OpId level = 1; level < depth; ++level)
      for (OpId i = 0; i < width; ++i)
        for (const OpId from : {i, i ^ (OpId{1} << (level - 1))})
          edges.emplace_back(first + (level - 1) * width + from, first + level * width + i);
  return edges;
}

// Rounds of maps that all reducers read, as many rounds as there is room for; a map reads one reducer of the round
// before.
Edges map_reduce(OpId ops) {
  const auto maps = static_cast<OpId>(std::lround(3 * std::pow(ops, 1 / 3.0))), reducers = std::max<OpId>(2, maps / 4);
  Edges edges;
  for (OpId first = 0; first + maps + reducers <= ops; first += maps + reducers) {
    for (OpId map = 0; map < maps && first > 0; ++map) edges.emplace_back(first - 1 - map % reducers, first + map);
    for (OpId reducer = 0; reducer < reducers; ++reducer)
      for (OpId map = 0; map < maps; ++map) edges.emplace_back(first + map, first + maps + reducer);
  }
  return edges;
}

// A training step: layers of branches forward, then backward, where each op reads what its forward twin wrote.
Edges training_step(OpId ops) {
  constexpr OpId kBranches = 6, kDepth = 3, kBlock = kBranches * kDepth + 1;  // The last op of a block joins.
  const OpId blocks = std::max<OpId>(1, ops / (2 * kBlock)), half = blocks * kBlock;
  Edges edges;
  for (OpId block = 0; block < blocks; ++block) {
    const OpId first = block * kBlock, join = first + kBlock - 1;
    for (OpId branch = 0; branch < kBranches; ++branch)
      for (OpId i = 0; i < kDepth; ++i) {
        const OpId op = first + branch * kDepth + i;
        if (i > 0) edges.emplace_back(op - 1, op);
        if (i == 0 && block > 0) edges.emplace_back(first - 1, op);
        if (i == kDepth - 1) edges.emplace_back(op, join);
      }
  }
  const Edges forward = edges;
  const auto twin = [&](OpId op) { return 2 * half - 1 - op; };
  for (const auto& [src, dst] : forward) edges.emplace_back(twin(dst), twin(src));
  for (OpId op = 0; op < half; ++op) edges.emplace_back(op, twin(op));
  return edges;
}

// Adds costs as doppler/graph/generate.h has them.
Graph with_costs(std::string_view family, const Edges& edges, const GeneratedCosts& costs, std::uint64_t seed) {
  OpId ops = 0;
  for (const auto& [src, dst] : edges) ops = std::max(ops, std::max(src, dst) + 1);
  Rng rng(seed);
  const auto draw = [&] { return std::exp(costs.spread * rng.normal() - costs.spread * costs.spread / 2); };
  std::vector<double> flops(ops), bytes(ops);
  double computed = 0, moved = 0;
  for (OpId op = 0; op < ops; ++op) {
    flops[op] = costs.mean_flops * draw();
    bytes[op] = draw();
    computed += flops[op];
  }
  for (const auto& [src, dst] : edges) moved += bytes[src];
  const double scale = costs.communication_ratio * computed / costs.reference_flops_per_second *
                       costs.reference_bytes_per_second / moved;
  GraphBuilder builder{std::string(family)};
  for (OpId op = 0; op < ops; ++op) {
    OpSpec spec;
    spec.flops = flops[op];
    builder.add_op(std::move(spec));
    builder.add_tensor(op, static_cast<Bytes>(scale * bytes[op]));  // The tensor has the id of its op.
  }
  for (const auto& [src, dst] : edges) builder.add_consumer(src, dst);
  return std::move(builder).build();
}

// Equal devices with equal links, or speeds 1, 1, 1/2, 1/4, … in two halves with links at a quarter between them.
Machine generated_machine(DeviceId count, bool equal, double jitter) {
  const GeneratedCosts reference;
  constexpr std::array kSpeeds = {1.0, 1.0, 0.5, 0.25};
  constexpr double kBetween = 0.25;
  std::vector<Device> devices(count);
  for (DeviceId i = 0; i < count; ++i) {
    devices[i].name = fmt::format("device{}", i);
    devices[i].type = "accelerator";
    const double speed = equal ? 1 : kSpeeds[i % kSpeeds.size()];
    devices[i].rates = {{"*", "*", speed * reference.reference_flops_per_second}};
  }
  std::vector<Link> links(std::size_t{count} * count);
  for (DeviceId a = 0; a < count; ++a)
    for (DeviceId b = 0; b < count; ++b)
      links[a * count + b].bytes_per_second =
          reference.reference_bytes_per_second * (equal || 2 * a / count == 2 * b / count ? 1 : kBetween);
  return Machine("generated", std::move(devices), std::move(links)).with_jitter(jitter);
}

using Family = std::pair<std::string_view, std::function<Graph(OpId, const GeneratedCosts&, std::uint64_t)>>;

// Each family and size twice, each time with the next of the settings, in an order that repeats only after all of them.
std::vector<ZeroShotInstance> make_generated(const std::vector<Family>& families, std::size_t first) {
  constexpr std::array kCommunication = {0.3, 1.0, 3.0, 10.0};
  constexpr std::array kSpreads = {0.5, 1.0, 1.7};
  constexpr std::array kJitter = {0.0, 0.1, 0.2};
  std::vector<ZeroShotInstance> instances;
  std::size_t number = first;
  for (const auto& [family, make] : families)
    for (const OpId ops : kSizes)
      for (std::size_t repetition = 0; repetition < kRepetitions; ++repetition, ++number) {
        std::size_t setting = number * 7;  // 7 and 24 have no common factor.
        const auto next = [&](std::size_t count) {
          const std::size_t digit = setting % count;
          setting /= count;
          return digit;
        };
        const double jitter = kJitter[next(3)];
        const bool equal = next(2) == 0, free = next(2) == 0, fifo = next(2) == 0;
        const DeviceId devices = mix(kSeed, number) % 2 == 0 ? 4 : 8;
        GeneratedCosts costs;
        costs.communication_ratio = kCommunication[mix(kSeed + 1, number) % kCommunication.size()];
        costs.spread = kSpreads[mix(kSeed + 2, number) % kSpreads.size()];
        Rules rules;
        rules.discipline = fifo ? Discipline::fifo : Discipline::priority;
        rules.links = free ? Links::free : Links::channels;
        Problem problem(make(ops, costs, mix(kSeed + 3, number)), generated_machine(devices, equal, jitter), rules);
        instances.push_back(
            {fmt::format("{} {} ccr {} {} {} {} jitter {}", family, ops, costs.communication_ratio,
                         equal ? "equal" : "unequal", free ? "free" : "channels", fifo ? "fifo" : "priority", jitter),
             std::move(problem), 0});
      }
  return instances;
}

std::vector<ZeroShotInstance> families() {
  const auto of = [](std::string_view name, Edges (*structure)(OpId)) {
    return Family(name, [=](OpId ops, const GeneratedCosts& costs, std::uint64_t seed) {
      return with_costs(name, structure(ops), costs, seed);
    });
  };
  return make_generated({of("cholesky", cholesky), of("stencil", stencil), of("butterfly", butterfly),
                         of("map-reduce", map_reduce), of("training-step", training_step)},
                        0);
}

std::vector<ZeroShotInstance> sizes() {
  const auto layered = [](OpId ops, const GeneratedCosts& costs, std::uint64_t seed) {
    return generate_layered({.ops = ops, .width = ops / 50 + 8, .degree = 2, .seed = seed, .costs = costs});
  };
  const auto random = [](OpId ops, const GeneratedCosts& costs, std::uint64_t seed) {
    return generate_random({.ops = ops, .degree = 2, .seed = seed, .costs = costs});
  };
  const auto series_parallel = [](OpId ops, const GeneratedCosts& costs, std::uint64_t seed) {
    return generate_series_parallel({.ops = ops, .parallel = 0.5, .seed = seed, .costs = costs});
  };
  const auto blocks = [](OpId ops, const GeneratedCosts& costs, std::uint64_t seed) {
    return generate_chain_of_blocks({.ops = ops, .width = 12, .depth = 5, .seed = seed, .costs = costs});
  };
  return make_generated(
      {{"layered", layered}, {"random", random}, {"series-parallel", series_parallel}, {"blocks", blocks}}, 1000);
}

ZeroShotInstance load_instance(const std::filesystem::path& path, const Machine& machine, const LoadOptions& options,
                               double known = 0) {
  std::string name = path.stem();
  if (options.shard > 0) name += fmt::format(" in {}", options.shard);
  if (options.rules.discipline != Discipline::fifo) name += " varied";
  return {std::move(name), load_problem(path, machine, options).problem, known};
}

std::vector<ZeroShotInstance> published() {
  const std::filesystem::path directory = shared_data() / "doppler_graphs";
  if (!std::filesystem::exists(directory)) return {};
  LoadOptions options;
  options.repair = true;
  options.links = Links::free;
  std::vector<ZeroShotInstance> instances;
  const auto add = [&](const char* file, DeviceId devices, double known) {
    instances.push_back(load_instance(directory / file, uniform_machine(devices).with_jitter(0), options, known));
  };
  add("chain_mm_112nodes.txt", 4, 1200.07e10);
  add("ffnn_192nodes.txt", 4, 56.70e10);
  add("transformer_block_215nodes.txt", 4, 166.72e10);
  add("full_transformer_layer_261nodes.txt", 4, 122.09e10);
  add("8gpu_transformer_block.txt", 8, 166.73e10);
  add("8gpu_full_transformer.txt", 8, 166.56e10);
  return instances;
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::exists(directory)) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (const auto kind = entry.path().extension(); kind == ".json" || kind == ".stg" || kind == ".onnx")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// How a file is run: exact times and free links under fifo, and as a real machine would.
LoadOptions plain_or_varied(bool varied) {
  LoadOptions options;
  options.repair = true;
  options.rules.discipline = varied ? Discipline::priority : Discipline::fifo;
  options.links = varied ? Links::channels : Links::free;
  return options;
}
constexpr double kVariedJitter = 0.1;

std::vector<ZeroShotInstance> instances() {
  std::vector<ZeroShotInstance> result;
  for (const auto& path : files_below(shared_data() / "instances"))
    for (const bool varied : {false, true})
      result.push_back(
          load_instance(path, uniform_machine(8).with_jitter(varied ? kVariedJitter : 0), plain_or_varied(varied)));
  return result;
}

std::vector<ZeroShotInstance> onnx() {
  std::vector<ZeroShotInstance> result;
  for (const auto& path : files_below(shared_data() / "onnx"))
    for (const std::uint32_t shard : {4U, 8U}) {
      const bool varied = shard == 8;
      LoadOptions options = plain_or_varied(varied);
      options.shard = shard;
      const Machine machine = load_machine(shard == 4 ? "p100x4" : "v100x8").with_jitter(varied ? kVariedJitter : 0);
      result.push_back(load_instance(path, machine, options));
    }
  return result;
}

std::vector<ZeroShotInstance> held_out() {
  constexpr std::uint64_t kHeldOut = 40;
  std::vector<ZeroShotInstance> result;
  for (std::uint64_t i = 0; i < kHeldOut; ++i) {
    const auto task = generate_task({}, Rng(kHeldOutSeed).split(i));
    const Rules& rules = task->problem().rules();
    const std::string title = task->name().substr(0, task->name().find(','));
    result.push_back({fmt::format("{} {} {}{}", title, to_string(rules.discipline), to_string(rules.links),
                                  task->objective().exact() ? "" : " varied"),
                      task->problem(), 0});
  }
  return result;
}

struct SetMaker {
  std::string_view name, summary;
  std::vector<ZeroShotInstance> (*make)();
};
constexpr SetMaker kSets[] = {
    {"published", "the six published graphs; best known: fifo, long runs", published},
    {"instances", "instances of other tools on uniform:8", instances},
    {"onnx", "models cut by --shard", onnx},
    {"families", "families that no training has", families},
    {"sizes", "families of the trainings, other seeds and sizes", sizes},
    {"held-out", "as generated in trainings: to choose by, not to report", held_out},
};

}  // namespace

std::vector<std::string_view> zero_shot_sets() {
  std::vector<std::string_view> names;
  for (const SetMaker& set : kSets) names.push_back(set.name);
  return names;
}

ZeroShotSet make_zero_shot_set(std::string_view name) {
  for (const SetMaker& set : kSets)
    if (set.name == name) return {std::string(set.name), std::string(set.summary), set.make()};
  throw InputError(fmt::format("--sets: found '{}'; required {}", name, fmt::join(zero_shot_sets(), ", ")));
}

}  // namespace doppler
