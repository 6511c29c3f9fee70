#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "doppler/kernels/array.h"

namespace doppler {

// Makes up reproducible values for every input of a program, such that deep programs stay finite: uniform with a
// variance of one over the number of elements that the first contraction sums up; complex numbers of modulus one;
// one-hot rows for what a cross entropy compares with; zeros for the state of an optimizer. Throws InputError for a
// dtype that the engine does not compute in.
Arrays generate_inputs(const program::Program& program, std::uint64_t seed);

// Makes up a value for every variable that the program reads: a small learning rate, Adam's decay rates after the first
// step, 1 for any other.
program::Variables generate_variables(const program::Program& program);

// Returns the input of that name; nothing if the program has none.
std::optional<program::ExprId> find_input(const program::Program& program, std::string_view name);

}  // namespace doppler
