#pragma once

#include "doppler/program/cut/decompose.h"

namespace doppler::program {

// A plan priced by the relational algebra: its joins and aggregations as the optimiser of physical.h would run them on
// the devices, in seconds.
struct RelationalPlan {
  Plan plan;
  Seconds seconds = 0;
};

// Returns what a plan takes, were the devices to work through the expressions one after the other. Einsums cost what
// their best physical plan costs, in which blocks have sites; everything else costs what EinDecomp's estimate says.
Seconds relational_seconds(const Program& program, const Plan& plan, const DecomposeOptions& options);

// Finds the cheapest plan by that measure among EinDecomp's best plans, those that cut one label throughout, the
// uncut one, and what the physical plans of these make of them: of the blocks of an einsum, those that a physical
// plan joins and folds on one site become one block. So a label that a join does not partition by is not cut, and
// neither is a reduced label whose groups are aggregated where they lie. Throws InfeasibleError if no plan fits in
// memory.
//
// EinDecomp's estimate takes the best case of every edge by itself, and a change of cut along another label for dearer
// than it is. Here all operators agree on where each block is, and movements are counted. But a block's site is its
// position in the grid of its blocks and nothing cleverer, and only the plans above are tried, where EinDecomp searches
// all boxes. Neither sees overlap. So each finds plans that the other misses.
RelationalPlan relational_plan(const Program& program, const DecomposeOptions& options);

}  // namespace doppler::program
