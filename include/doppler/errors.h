#pragma once

// What doppler throws. Every function says which of these it throws and when.
//
//   try {
//     doppler::load_problem(path, machine);
//   } catch (const doppler::InputError& error) {
//     std::cerr << error.what() << "\n";   // model.onnx: node 'conv1' reads tensor 'x'; no node produces it
//   }

#include <stdexcept>
#include <string>
#include <utility>

namespace doppler {

namespace detail {
// what() ends at the first NUL, and names from files may hold one: it is written out instead.
inline std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}
}  // namespace detail

// Texts read "where: found; required[; what to do]", lower case, values quoted.

// The user's file or flag is wrong: exit code 2.
struct InputError : std::runtime_error {
  explicit InputError(std::string text) : std::runtime_error(detail::without_nul(std::move(text))) {}
};

// The question is well posed but has no answer, e.g. no placement fits in memory: exit code 3.
struct InfeasibleError : std::runtime_error {
  explicit InfeasibleError(std::string text) : std::runtime_error(detail::without_nul(std::move(text))) {}
};

// Our bug: exit code 70.
struct InternalError : std::logic_error {
  explicit InternalError(std::string text) : std::logic_error(detail::without_nul(std::move(text))) {}
};

// A run was interrupted, by the user or by whoever else may stop it: exit code 130. Lack of memory is
// std::bad_alloc: exit code 71.
struct RunCancelled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace doppler
