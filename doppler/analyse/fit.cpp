#include "doppler/analyse/fit.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/objective.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/list/memory_greedy.h"
#include "doppler/place/memory.h"
#include "doppler/problem/modules.h"

namespace doppler {
namespace {

constexpr std::size_t kPartsShown = 3;
constexpr DeviceId kMostMore = 64;  // devices, beyond which nobody buys more

std::vector<FitFacts::Part> largest_parts(const Graph& graph) {
  const std::vector<std::string> labels = Modules(graph).units(Granularity::layer);
  std::map<std::string, Bytes> bytes;
  for (OpId op = 0; op < graph.op_count(); ++op)
    bytes[labels[op].empty() ? graph.name(op) : labels[op]] += graph.parameter_bytes(op);
  std::vector<FitFacts::Part> parts;
  for (const auto& [name, size] : bytes) parts.push_back({name, size});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const FitFacts::Part& a, const FitFacts::Part& b) { return a.bytes > b.bytes; });
  if (parts.size() > kPartsShown) parts.resize(kPartsShown);
  std::erase_if(parts, [](const FitFacts::Part& part) { return part.bytes == 0; });
  return parts;
}

// The least number of further devices with which it fits, by bisection; 0: so many are not enough, or time is up.
DeviceId devices_to_add(const Problem& problem, DeviceId like, const Budget& budget) {
  const auto fits = [&](DeviceId more) {
    return problem.device_count() + more <= kMostDevices &&
           fits_somehow(problem.on(problem.machine().with_more(like, more)), budget);
  };
  DeviceId enough = 1;
  while (enough < kMostMore && !fits(enough)) enough *= 2;
  if (enough >= kMostMore && !fits(enough)) return 0;
  DeviceId too_few = enough / 2;
  while (too_few + 1 < enough) {
    const DeviceId middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

bool fits_somehow(const Problem& problem, const Budget& budget) {
  try {
    ExactObjective exact(problem);
    MethodOptions options;
    options.budget = budget;
    bool fits = false;
    ask(quick_methods(problem), problem, exact, options, [&](std::string_view, const Proposal& proposal) {
      fits = fits || exact.fits_in_memory(proposal.placement, budget);
    });
    return fits || exact.fits_in_memory(memory_greedy(problem, exact, options).placement, budget);
  } catch (const InfeasibleError&) {
    return false;
  } catch (const OutOfTime&) {
    return false;
  }
}

FitFacts analyse_fit(const Problem& problem, const Budget& budget) {
  const Graph& graph = problem.graph();
  const Machine& machine = problem.machine();
  FitFacts facts;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const Bytes working = working_set(problem.costs(), op), own = graph.parameter_bytes(op) + working;
    facts.parameters += graph.parameter_bytes(op);
    facts.working_set = std::max(facts.working_set, working);
    if (own > facts.largest_op_needs) facts.largest_op_needs = own, facts.largest_op = graph.name(op);
  }
  DeviceId largest = 0;
  facts.devices = machine.device_count();
  for (DeviceId id = 0; id < machine.device_count(); ++id) {
    const Bytes memory = machine.device(id).memory;
    facts.available += memory;
    if (memory > machine.device(largest).memory) largest = id;
  }
  facts.largest_device = machine.device(largest).memory;
  facts.largest = largest_parts(graph);
  if (facts.largest_op_needs <= facts.largest_device)
    if (const DeviceId more = devices_to_add(problem, largest, budget); more > 0)
      facts.remedies.push_back(
          fmt::format("{} more device{} like '{}'", more, more == 1 ? "" : "s", machine.device(largest).name));
  // Half the bytes on this machine are all the bytes on one with twice the memory.
  if (fits_somehow(problem.on(machine.with_memory(2)), budget))
    facts.remedies.emplace_back("numbers of half the size (f16 in place of f32)");
  return facts;
}

std::string describe_fit(const std::string& graph, const Machine& machine, const FitFacts& facts) {
  std::string text =
      fmt::format("{}: needs at least {} (parameters {}, tensors of one op {}); machine '{}' has {} on {} device{}",
                  graph, format_bytes(facts.needed()), format_bytes(facts.parameters), format_bytes(facts.working_set),
                  machine.name(), format_bytes(facts.available), facts.devices, facts.devices == 1 ? "" : "s");
  if (facts.largest_op_needs > facts.largest_device)
    text += fmt::format("; op '{}' alone needs {}, more than any device has ({})", facts.largest_op,
                        format_bytes(facts.largest_op_needs), format_bytes(facts.largest_device));
  std::vector<std::string> parts;
  for (const FitFacts::Part& part : facts.largest)
    parts.push_back(fmt::format("'{}' {}", part.name, format_bytes(part.bytes)));
  if (!parts.empty()) text += fmt::format("; most parameters: {}", fmt::join(parts, ", "));
  return text + (facts.remedies.empty() ? "; required more memory than was tried"
                                        : fmt::format("; would fit with {}", fmt::join(facts.remedies, ", or with ")));
}

}  // namespace doppler
