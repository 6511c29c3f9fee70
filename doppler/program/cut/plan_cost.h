#pragma once

#include "doppler/program/cut/decompose.h"

namespace doppler::program {

// The cost of a plan as a sum over expressions and edges.
//
// Let N be the number of devices, P the blocks of an expression.
// - Computing takes ⌈P/N⌉ blocks in a row, each by the roofline of Speeds.
// - An aggregating einsum with Bz blocks on its output labels moves all partial results but one per output
// block:
//   |Z|·(P/Bz - 1) bytes; the formation folds them.
// - An edge carries X from box a to a consumer that needs box b, each b-block in r = P/Πb copies. At best one
// copy of
//   a b-block shares a device with a block of a, one to one, so Π min(a,b)/max(a,b) of X stays where it is:
//   |X|·(r - Π min(a,b)/max(a,b)) bytes move, in P·Π⌈a/b⌉ messages.
// - Moving takes bytes/bandwidth + latency·messages, over min(P, N) links at once.
// Resident inputs move nothing and occupy |W|·P/blocks(W) bytes.
class PlanCosts {
 public:
  PlanCosts(const Program& program, const DecomposeOptions& options);

  // The expression on its own, its formation included.
  PlanCost own(ExprId id, const Box& box) const;
  // Operand k of `id`, whose producer's output is cut `produced`.
  PlanCost edge(ExprId id, std::size_t operand, const Box& produced, const Box& box) const;
  // The same when the producer is cut to measure: only copies move.
  PlanCost least_edge(ExprId id, std::size_t operand, const Box& box) const;
  // True if the operand comes over an edge, i.e. is not resident.
  bool has_edge(ExprId id, std::size_t operand) const;
  // Bytes of the operand that the expression reads.
  double operand_bytes(ExprId id, std::size_t operand) const;
  // False if one block and its operands exceed the memory of a device.
  bool fits(ExprId id, const Box& box) const;

 private:
  double devices() const { return static_cast<double>(devices_); }
  PlanCost moving(double bytes, double messages, double blocks) const;

  const Program& program_;
  const Speeds& speeds_;
  Index devices_;
  std::vector<char> resident_;  // by expression: inputs that nothing updates, and views of them
};

// Plans with one cut label each, where the search may start: along every dimension of the first data input,
// and model parallel.
std::vector<Plan> single_cut_plans(const Program& program, Index parts);

void operator+=(PlanCost& sum, const PlanCost& added);

}  // namespace doppler::program
