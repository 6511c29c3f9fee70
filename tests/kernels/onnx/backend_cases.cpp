#include "tests/kernels/onnx/backend_cases.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "doppler/kernels/onnx/convert_elements.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "/usr/share/libonnx-testdata/data";
// These are the defaults of onnx.backend.test.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot open it; required a file", path.string()));
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string tensor_difference(const model::Tensor& found, const model::Tensor& expected) {
  if (found.type != expected.type)
    return fmt::format("found {}; required {}", to_string(found.type), to_string(expected.type));
  const auto count = static_cast<std::size_t>(expected.type.count());
  if (!is_floating(expected.type.element)) {
    std::vector<std::int64_t> a(count), b(count);
    load_elements(found.type.element, found.data.get(), a.data(), count);
    load_elements(expected.type.element, expected.data.get(), b.data(), count);
    for (std::size_t i = 0; i < count; ++i)
      if (a[i] != b[i]) return fmt::format("element {} is {}; required {}", i, a[i], b[i]);
    return "";
  }
  std::vector<double> a(count), b(count);
  load_elements(found.type.element, found.data.get(), a.data(), count);
  load_elements(expected.type.element, expected.data.get(), b.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::abs(a[i] - b[i]) <= kAbsolute + kRelative * std::abs(b[i]);
    if (!same) return fmt::format("element {} is {}; required {}", i, a[i], b[i]);
  }
  return "";
}

model::Value load(const fs::path& path, const model::ModelPorts::Port& port) {
  model::Value value = model::parse_value_pb(path.string(), read_file(path), port.kind);
  // The files have bf16, which NumPy has not, as integers of the same bits.
  if (value.tensor.type.element == model::Element::u16 && port.element == static_cast<int>(model::Element::bf16))
    value.tensor.type.element = model::Element::bf16;
  return value;
}

}  // namespace

std::vector<BackendCase> backend_cases(const std::string& suite) {
  std::vector<BackendCase> cases;
  const fs::path root = fs::path(kData) / suite;
  if (!fs::is_directory(root)) return cases;
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::is_regular_file(entry.path() / "model.onnx"))
      cases.push_back({suite + "/" + entry.path().filename().string(), entry.path()});
  std::sort(cases.begin(), cases.end(), [](const BackendCase& a, const BackendCase& b) { return a.name < b.name; });
  return cases;
}

std::vector<BackendData> load_backend_data(const BackendCase& one) {
  const model::ModelPorts ports = model::parse_model_ports(one.model().string(), read_file(one.model()));
  std::vector<BackendData> sets;
  for (int set = 0;; ++set) {
    const fs::path directory = one.directory / fmt::format("test_data_set_{}", set);
    if (!fs::is_directory(directory)) return sets;
    BackendData data;
    for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
      const fs::path file = directory / fmt::format("input_{}.pb", i);
      if (fs::exists(file)) data.inputs[ports.inputs[i].name] = load(file, ports.inputs[i]);
    }
    for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
      const fs::path file = directory / fmt::format("output_{}.pb", i);
      if (fs::exists(file)) data.outputs.emplace_back(ports.outputs[i].name, load(file, ports.outputs[i]));
    }
    sets.push_back(std::move(data));
  }
}

std::string difference(const model::Value& found, const model::Value& expected) {
  if (found.kind != expected.kind) return "found another kind of value";
  if (expected.kind == model::Value::Kind::tensor) return tensor_difference(found.tensor, expected.tensor);
  if (found.elements.size() != expected.elements.size())
    return fmt::format("found {} elements; required {}", found.elements.size(), expected.elements.size());
  for (std::size_t i = 0; i < expected.elements.size(); ++i)
    if (std::string text = difference(found.elements[i], expected.elements[i]); !text.empty())
      return fmt::format("element {} of the sequence: {}", i, text);
  return "";
}

std::string failure_of(const BackendCase& one, const RunCase& run) try {
  const std::vector<BackendData> sets = load_backend_data(one);
  if (sets.empty()) return "found no data";
  for (const BackendData& data : sets) {
    const std::vector<model::Value> found = run(one, data);
    if (found.size() < data.outputs.size())
      return fmt::format("found {} outputs; required {}", found.size(), data.outputs.size());
    for (std::size_t i = 0; i < data.outputs.size(); ++i)
      if (std::string text = difference(found[i], data.outputs[i].second); !text.empty())
        return fmt::format("output '{}': {}", data.outputs[i].first, text);
  }
  return "";
} catch (const InputError& error) {
  return error.what();
}

std::map<std::string, std::string> read_exceptions(const fs::path& list) {
  std::map<std::string, std::string> exceptions;
  std::istringstream lines(read_file(list));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || !exceptions.emplace(line.substr(0, colon), line.substr(colon + 2)).second)
      throw InputError(fmt::format("{}: found '{}'; required 'name: reason', each once", list.string(), line));
  }
  return exceptions;
}

void expect_suite(const std::string& suite, const RunCase& run, const fs::path& list) {
  const std::vector<BackendCase> cases = backend_cases(suite);
  if (cases.empty()) GTEST_SKIP() << kData << "/" << suite << " is absent; tools/install_deps test installs it";
  const std::map<std::string, std::string> exceptions = read_exceptions(list);
  std::size_t passed = 0, listed = 0;
  for (const BackendCase& one : cases) {
    const std::string failure = failure_of(one, run);
    const auto exception = exceptions.find(one.name);
    passed += failure.empty() ? 1 : 0;
    listed += exception != exceptions.end() ? 1 : 0;
    if (!failure.empty() && exception == exceptions.end()) ADD_FAILURE() << one.name << ": " << failure;
    if (failure.empty() && exception != exceptions.end())
      ADD_FAILURE() << one.name << " passes; required its line to leave " << list;
  }
  for (const auto& [name, reason] : exceptions)
    if (name.starts_with(suite + "/") &&
        std::none_of(cases.begin(), cases.end(), [&](const BackendCase& one) { return one.name == name; }))
      ADD_FAILURE() << list << " names '" << name << "'; required a case of the suite";
  std::cout << fmt::format("{}: {} of {} cases pass, {} are listed with their reasons\n", suite, passed, cases.size(),
                           listed);
}

}  // namespace doppler::test
