#pragma once

// What doppler throws. Every function that reads or searches says which of these it throws and when; nothing else leaves
// the library.
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

}  // namespace doppler
