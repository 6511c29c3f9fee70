#pragma once

// ONNX's own backend tests (Debian's libonnx-testdata): models with inputs and the outputs that they must give. Whoever
// runs models checks himself by them: the interpreter here, the engine in its own tests.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "doppler/program/onnx/tensor_file.h"

namespace doppler::test {

struct BackendCase {
  std::string name;  // "node/test_add"
  std::filesystem::path directory;
  std::filesystem::path model() const { return directory / "model.onnx"; }
};

// Returns the cases of a suite (node, simple, pytorch-converted, pytorch-operator), by name; none if the package is not
// installed.
std::vector<BackendCase> backend_cases(const std::string& suite);

// One set of inputs and the outputs that it must give, by name.
struct BackendData {
  std::map<std::string, model::Value> inputs;
  std::vector<std::pair<std::string, model::Value>> outputs;
};
std::vector<BackendData> load_backend_data(const BackendCase& one);

// Returns what differs, or nothing. Floats may differ by what ONNX's own runner allows.
std::string difference(const model::Value& found, const model::Value& expected);

// Runs a case: returns the outputs of the model, in its order.
using RunCase = std::function<std::vector<model::Value>(const BackendCase& one, const BackendData& data)>;
// Returns why the case does not pass, or nothing if it does.
std::string failure_of(const BackendCase& one, const RunCase& run);

// Reads a list of cases that do not pass: "name: reason" per line, '#' for comments.
std::map<std::string, std::string> read_exceptions(const std::filesystem::path& list);

// Checks that exactly the cases of the suite that the list names do not pass, and prints how many do.
void expect_suite(const std::string& suite, const RunCase& run, const std::filesystem::path& exceptions);

}  // namespace doppler::test
