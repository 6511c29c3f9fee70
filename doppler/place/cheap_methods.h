#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "doppler/method.h"

namespace doppler {

// A method that costs little beside a search: where searches and trainings begin, and what they must beat.
struct CheapMethod {
  std::string_view name;
  Proposal (*run)(const Problem&, Objective&, const MethodOptions&);
  double share;   // of a search's budget that it may use at most
  bool quick;     // one pass over the graph or little more: the rivals of a learned policy
  bool promised;  // `auto` is never worse, so it asks even if time is up
};

// All of them, the fastest first, so that a short budget has an answer early.
std::span<const CheapMethod> cheap_methods();
// Those that are quick on the problem's devices.
std::span<const CheapMethod> quick_methods(const Problem& problem);

// The name for what a method found: near_single where `single` had to use several devices.
std::string_view found_by(const CheapMethod& method, const Placement& placement);

// Runs methods one after the other and hands what each found to `consider`; those that find nothing that fits in
// memory, or nothing in time, are left out. Returns why the first did not fit; empty: none.
std::string ask(std::span<const CheapMethod> methods, const Problem& problem, Objective& objective,
                const MethodOptions& options,
                const std::function<void(std::string_view name, Proposal proposal)>& consider);

}  // namespace doppler
