#pragma once

#include <string>
#include <vector>

#include "doppler/objective.h"
#include "doppler/problem/modules.h"
#include "doppler/results.h"

namespace doppler {

// Ops that somebody asks about together: one op, or all ops of a module.
struct NamedOps {
  std::string name;
  std::vector<OpId> ops;
};
// What a text names: a module with everything in it, an op, or all modules (else ops) that a pattern matches. Throws
// InputError with what may have been meant if it names nothing.
std::vector<NamedOps> ops_named(const std::string& where, const Graph& graph, const Modules& modules,
                                const std::string& text);

// The same placement with these ops, and those that share a device with them, on another device; nothing if one of them
// may not go there.
std::optional<Placement> moved(const Problem& problem, const Placement& placement, const std::vector<OpId>& ops,
                               DeviceId to);

// What every other device would cost, each by a simulation of the whole.
std::vector<WhyResult::Elsewhere> elsewhere(Objective& exact, const Placement& placement, const std::vector<OpId>& ops);

}  // namespace doppler
