#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doppler/graph.h"
#include "doppler/program/expr/evaluate.h"
#include "doppler/program/expr/program.h"

namespace doppler::program {

// How each expression is cut: one Box per expression, over its join space. Boxes of inputs count only where
// an update replaces the input; all other inputs are resident wherever they are read.
using Plan = std::vector<Box>;

// One block per expression.
Plan uncut(const Program& program);
// Makes a plan legal from the boxes of einsums, fills and the like: formations take their producer's output
// cuts, and updated inputs the cuts of their next value.
void complete(const Program& program, Plan& plan);
// Throws InputError naming the expression if a box has the wrong rank, cuts a label in more pieces than it
// has elements, or breaks a rule that complete() establishes.
void check(const Program& program, const Plan& plan);
// Expressions that an output or an update needs; all of them if neither is marked.
std::vector<char> live(const Program& program);

// A device and its links, as far as costs depend on them. The default is a P100 on PCIe 3.
struct Speeds {
  double flops_per_second = 9.3e12;
  double memory_bytes_per_second = 7.32e11;
  double link_bytes_per_second = 1.2e10;
  Seconds latency = 1e-5;   // per transfer
  Seconds overhead = 5e-6;  // per op
  Bytes memory = 0;         // per device; 0: unlimited
};
Seconds block_time(const Speeds& speeds, Flops flops, Bytes bytes);

enum class CostMode : std::uint8_t {
  per_block,  // flops and bytes of each block; the machine makes times of them
  published,  // the elements of the whole join space on every block, four times that per transfer (a defect
              // kept for parity: spec of the published graphs)
  seconds,    // explicit times from Speeds
};
std::string_view to_string(CostMode mode);
CostMode parse_cost_mode(std::string_view text);  // throws InputError

struct LowerOptions {
  CostMode costs = CostMode::per_block;
  Speeds speeds = {};
  // A formation of a single partial result is no op: its readers read that. The published graphs have them all.
  bool skip_single_formations = false;
  std::string title = {};
};

// What an engine needs to run one op: the expression, its block of the join space, and where the operands
// come from.
struct Piece {
  TensorId tensor = 0;  // meaningful unless the operand is resident
  Rect region;          // of the operand's index space; lies inside Lowered::tensor_regions[tensor]
};
struct Operand {
  ExprId expr = 0;
  bool resident = false;  // read from an input of the program, not from a tensor
  Rect region;            // what the block needs; the pieces cover it without overlap (a formation: each covers it)
  std::vector<Piece> pieces;
};
struct Kernel {
  ExprId expr = 0;
  Rect block;
  std::vector<Operand> operands;
};

// The placement view: one op per block, one tensor per rectangle that some block needs of another, no devices
// yet.
struct Lowered {
  Graph graph;
  std::vector<Kernel> kernels;       // by op
  std::vector<Rect> tensor_regions;  // by tensor: the rectangle of the producer's output
};
Lowered lower(const Program& program, const Plan& plan, const LowerOptions& options = {});

// Runs the lowered graph op by op and puts the outputs together again: the reference for engines and for
// tests. Returns a value for every expression that is lowered; throws InternalError if an element is written
// twice or never.
Values run_lowered(const Program& program, const Lowered& lowered, const Values& inputs,
                   const Variables& variables = {});

}  // namespace doppler::program
