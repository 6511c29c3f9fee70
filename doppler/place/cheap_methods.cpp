#include "doppler/place/cheap_methods.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/place/list/critical_path.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/memory_greedy.h"
#include "doppler/place/list/single.h"
#include "doppler/place/partition/enumerative.h"
#include "doppler/place/partition/metis.h"

namespace doppler {
namespace {

constexpr CheapMethod kCheap[] = {
    {"heft", heft, 0.5, true, true},
    {"single", near_single, 0.1, true, true},
    {"etf", etf, 0.5, true, true},
    {"enumerative", enumerative, 0.1, true, false},
    {"metis", metis, 0.2, false, true},
    {"critical_path", critical_path, 0.05, false, false},
    {"memory_greedy", memory_greedy, 0.1, false, false},
};
constexpr std::size_t kQuick = 4;
static_assert(kCheap[kQuick - 1].run == enumerative && kCheap[kQuick - 1].quick && !kCheap[kQuick].quick);
// Enumerative's assignments take the cube of the devices; up to so many it is as quick as ETF.
constexpr std::size_t kDevicesOfEnumerative = 64;

}  // namespace

std::span<const CheapMethod> cheap_methods() { return kCheap; }
std::string_view found_by(const CheapMethod& method, const Placement& placement) {
  const std::vector<DeviceId>& devices = placement.device_of_op;
  const bool one = std::all_of(devices.begin(), devices.end(), [&](DeviceId id) { return id == devices.front(); });
  return method.run == near_single && !one ? "near_single" : method.name;
}
std::span<const CheapMethod> quick_methods(const Problem& problem) {
  return std::span(kCheap).first(problem.device_count() <= kDevicesOfEnumerative ? kQuick : kQuick - 1);
}

std::string ask(std::span<const CheapMethod> methods, const Problem& problem, Objective& objective,
                const MethodOptions& options,
                const std::function<void(std::string_view name, Proposal proposal)>& consider) {
  std::string why_not;
  for (const CheapMethod& method : methods) {
    MethodOptions part = options;
    part.on_progress = nullptr;
    try {
      Proposal proposal = method.run(problem, objective, part);
      const std::string_view name = found_by(method, proposal.placement);
      consider(name, std::move(proposal));
    } catch (const InfeasibleError& error) {
      if (why_not.empty()) why_not = error.what();
    } catch (const OutOfTime&) {
      return why_not;  // the others would only find out the same
    }
  }
  return why_not;
}

}  // namespace doppler
