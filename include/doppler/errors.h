#pragma once

// What doppler throws. Every function says which of these it throws and when.
//
//   try {
//     doppler::load_problem(path, machine);
//   } catch (const doppler::InputError& error) {
//     std::cerr << error.what() << "\n";   // model.onnx: node 'conv1' reads tensor 'x'; no node produces it
//   }

#include <stdexcept>

namespace doppler {

// Texts read "where: found; required[; what to do]", lower case, values quoted.

// The user's file or flag is wrong: exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The question is well posed but has no answer, e.g. no placement fits in memory: exit code 3.
struct InfeasibleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Our bug: exit code 70.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

// A run was interrupted, by the user or by whoever else was given the flag.
struct RunCancelled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace doppler
