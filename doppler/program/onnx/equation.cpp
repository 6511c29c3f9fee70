#include "doppler/program/onnx/equation.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

constexpr std::string_view kEllipsis = "...";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == separator)
      terms.emplace_back();
    else
      terms.back() += c;
  }
  return terms;
}

// Returns the labels of one term; the ellipsis stands for as many labels as `covered`.
std::vector<std::string> labels_of(const std::string& term, std::size_t covered) {
  std::vector<std::string> labels;
  const std::size_t dots = term.find(kEllipsis);
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (std::size_t k = covered; k-- > 0;) labels.push_back(fmt::format("...{}", k));  // aligned at the right
      i += kEllipsis.size() - 1;
    } else {
      labels.emplace_back(1, term[i]);
    }
  }
  return labels;
}

std::size_t letters_in(const std::string& term) {
  return static_cast<std::size_t>(
      std::count_if(term.begin(), term.end(), [](unsigned char c) { return std::isalpha(c) != 0; }));
}

// Without "->" the output has the ellipsis, then every letter that occurs once, in alphabetical order.
std::vector<std::string> implicit_output(const std::string& left, std::size_t covered) {
  std::vector<std::string> output = labels_of(left.find(kEllipsis) != std::string::npos ? "..." : "", covered);
  std::map<char, int> count;
  for (const char c : left)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) ++count[c];
  for (const auto& [letter, times] : count)
    if (times == 1) output.emplace_back(1, letter);
  return output;
}

}  // namespace

Equation parse_equation(const onnx::NodeProto& node, const std::vector<Shape>& operands) {
  std::string text = string_attribute(node, "equation", "");
  std::erase(text, ' ');
  const auto refuse = [&](const std::string& required) {
    throw InputError(fmt::format("{}: found equation '{}'; required {}", describe(node), text, required));
  };
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  const std::vector<std::string> terms = split(left, ',');
  if (terms.size() != operands.size()) refuse(fmt::format("{} terms, one per input", operands.size()));
  Equation result;
  std::size_t covered = 0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const std::size_t letters = letters_in(terms[k]), rank = operands[k].size();
    const bool dots = terms[k].find(kEllipsis) != std::string::npos;
    if (letters + (dots ? kEllipsis.size() : 0) != terms[k].size()) refuse("letters and at most one '...' per term");
    if (dots ? letters > rank : letters != rank) refuse(fmt::format("as many labels as input {} has dimensions", k));
    const std::size_t own = dots ? rank - letters : 0;
    covered = std::max(covered, own);
    result.inputs.push_back(labels_of(terms[k], own));
    for (std::size_t i = 0; i < rank; ++i) {
      Index& size = result.sizes.try_emplace(result.inputs[k][i], 1).first->second;
      if (size != 1 && operands[k][i] != 1 && size != operands[k][i])
        refuse(fmt::format("one size for label '{}', not {} and {}", result.inputs[k][i], size, operands[k][i]));
      if (size == 1) size = operands[k][i];
    }
  }
  result.output =
      arrow == std::string::npos ? implicit_output(left, covered) : labels_of(text.substr(arrow + 2), covered);
  for (const std::string& label : result.output)
    if (!result.sizes.contains(label)) refuse(fmt::format("output labels that an input has, not '{}'", label));
  return result;
}

}  // namespace doppler::program
