#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "doppler/program/onnx/reading.h"

namespace doppler::program {

using NodeIndex = std::size_t;

// The main graph of a model while passes rewrite it: its nodes, what is known of its tensors, who writes and who reads
// them. Passes never look at weights. What has to be computed of them becomes nodes that depend on no data, which the
// reader folds away and which run once, before the first run.
class Rewriting {
 public:
  // `reading` knows the types of the graph's tensors; the graph is its model's and changes in place.
  explicit Rewriting(Reading& reading);

  // Nodes are numbered; numbers stay, also when others are dropped.
  NodeIndex size() const { return nodes_.size(); }
  bool alive(NodeIndex node) const { return nodes_[node].alive; }
  const onnx::NodeProto& node(NodeIndex node) const { return *nodes_[node].proto; }
  bool is(NodeIndex node, std::string_view name) const;  // as operator_name() has it, and alive
  int opset() const { return opset_; }                   // of the standard domain

  // Returns the node that writes the tensor; nothing if it is an input or an initialiser.
  std::optional<NodeIndex> writer(const std::string& tensor) const;
  // Returns the node that writes the tensor if it is of this operator and nobody but one node reads it, once.
  std::optional<NodeIndex> sole_writer(const std::string& tensor, std::string_view name) const;
  // Returns the only reader of what the node writes; nothing if there are several, or if the tensor is a result of the
  // model or read in the body of a control flow.
  std::optional<NodeIndex> only_reader(NodeIndex node) const;
  std::vector<NodeIndex> readers(const std::string& tensor) const;

  // What is known of tensors: the dimensions if all are known, and the value of a small one that depends on no data.
  std::optional<Shape> shape(const std::string& tensor) const;
  std::int32_t element(const std::string& tensor) const;  // 0 if it is not known
  bool is_static(const std::string& tensor) const;
  std::optional<double> scalar(const std::string& tensor) const;                // of one element
  std::optional<std::vector<Index>> integers(const std::string& tensor) const;  // of any number

  // Adds a node on static tensors and returns the name of its output, which has this type.
  std::string add_static(const std::string& op, const std::vector<std::string>& inputs, const Shape& shape,
                         std::int32_t element, std::vector<onnx::AttributeProto> attributes = {});
  std::string add_scalar(float value);
  std::string add_integers(const std::vector<Index>& values);

  // Puts `fused` in the place of nodes of which the last one writes what the fused one writes. Nothing that the others
  // write may be read by anybody else.
  void fuse(const std::vector<NodeIndex>& nodes, onnx::NodeProto fused);

  // Writes the nodes that are left into the graph. Returns, by node of the graph as it was, the node that does its work
  // now.
  std::vector<int> finish();

 private:
  struct Slot {
    onnx::NodeProto* proto = nullptr;
    bool alive = true;
    std::vector<int> origins = {};  // nodes of the graph as it was
  };
  struct Tensor {
    std::optional<NodeIndex> writer;
    std::vector<NodeIndex> readers;  // one entry per time that it is read
    bool kept = false;               // a result of the model, or read in a body
    onnx::TypeProto type;
    bool is_static = false;
    std::optional<Constant> constant;
  };
  const Tensor* find(const std::string& name) const;
  NodeIndex add(onnx::NodeProto node, std::vector<int> origins);
  void forget(NodeIndex node);
  std::string fresh_name(const std::string& what);

  onnx::ModelProto& model_;
  Nodes storage_;  // of all nodes, also of those that are gone
  std::vector<Slot> nodes_;
  std::unordered_map<std::string, Tensor> tensors_;
  int opset_ = 1, originals_ = 0;
  std::size_t names_ = 0;
};

// Makes a node of a pass. A domain that the model does not import is added to it.
onnx::NodeProto make_node(std::string_view name, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& node_name);

onnx::AttributeProto int_value(const std::string& name, Index value);
onnx::AttributeProto float_value(const std::string& name, float value);
onnx::AttributeProto ints_value(const std::string& name, const std::vector<Index>& values);
onnx::AttributeProto floats_value(const std::string& name, const std::vector<float>& values);
onnx::AttributeProto string_value(const std::string& name, const std::string& value);
float float_attribute(const onnx::NodeProto& node, std::string_view name, float otherwise);

}  // namespace doppler::program
