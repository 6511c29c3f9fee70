#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <variant>

#include "doppler/program/onnx/tensor.h"

// Nodes and graphs of ONNX models, free of ONNX's own headers: what kernels are made from and interpreters run.

namespace doppler::model {

struct GraphBody;

struct Attribute {
  using Values = std::variant<Index, float, std::string, std::vector<Index>, std::vector<float>,
                              std::vector<std::string>, Tensor, std::shared_ptr<const GraphBody>>;
  std::string name;
  Values value;
  std::string refers_to = {};  // in a function: the attribute of the call whose value this one has
};

// The attributes of a node. Reading one that has another type than asked for throws InputError naming it.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<Attribute> list) : list_(list) {}
  void set(std::string name, Attribute::Values value);  // replaces one of the same name
  void refer(std::string name, std::string to) { list_.push_back({std::move(name), Index{0}, std::move(to)}); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Attribute* find(std::string_view name) const;

  Index integer(std::string_view name, Index otherwise) const;
  float real(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::optional<std::vector<Index>> integers(std::string_view name) const;
  std::optional<std::vector<float>> reals(std::string_view name) const;
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  const Tensor* tensor(std::string_view name) const;  // null if there is none
  std::shared_ptr<const GraphBody> graph(std::string_view name) const;

  const std::vector<Attribute>& all() const { return list_; }

 private:
  template <typename T>
  const T* get(std::string_view name, const char* wanted) const;
  std::vector<Attribute> list_;
};

// A node by names; an empty name is an absent input or output.
struct Node {
  std::string name;
  std::string op_type;
  std::string domain;  // "" for ONNX's own
  std::vector<std::string> inputs, outputs;
  Attributes attributes;
};
// Returns "node 'conv1' (Conv)", or "(com.microsoft.Gelu)"; a node without a name goes by its first output.
std::string describe(const Node& node);

// The main graph of a model, or the body of a control-flow node.
struct GraphBody {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Tensor> initializers;
  std::vector<Node> nodes;  // producers first
};

// A function that a model defines for its own nodes. Attributes of its nodes may refer to those of the call.
struct FunctionBody {
  GraphBody body;
  std::map<std::string, int> opsets;
};

struct ModelBody {
  std::map<std::string, int> opsets;  // by domain
  GraphBody graph;
  std::map<std::string, FunctionBody> functions;  // by "domain.name", or "name" in ONNX's own domain
};

}  // namespace doppler::model
