#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "doppler/graph.h"
#include "doppler/load.h"

namespace doppler {

// The modules that ops belong to, as far as names tell: "/layer1/layer1.0/conv1/Conv" is op Conv of module
// layer1.0.conv1, within layer1.0, within layer1. PyTorch repeats the name of a container before the number of its
// child, and counts the calls of one module, so that relu_1 beside relu is the same module.
class Modules {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = std::numeric_limits<Id>::max();

  struct Module {
    std::string name;      // from the outermost, with dots
    Id parent = kNone;     // none: the model itself
    bool has_ops = false;  // ops of its own, not only of modules within
    bool has_modules = false;
    bool numbered = false;    // it, or a module around it, is one of a numbered list: part of a repeated block
    bool has_blocks = false;  // numbered modules within that have modules themselves
  };

  // `parameters` are names such as "layer1.0.conv1.weight": a module that holds one is never taken for a second call.
  explicit Modules(const Graph& graph, std::span<const std::string> parameters = {});

  bool empty() const { return modules_.empty(); }
  std::size_t size() const { return modules_.size(); }
  const Module& operator[](Id id) const { return modules_[id]; }
  Id of(OpId op) const { return module_of_op_[op]; }  // the innermost, or kNone
  // The innermost module of the op and those around it, the outermost first.
  std::vector<Id> path(OpId op) const;

  // Whether the module is only ever on one device as a whole. A module that computes something of its own beside its
  // modules (a residual sum, a concatenation) needs their results in one place. One that hands data through a list of
  // blocks does not, unless it is part of a block itself.
  bool indivisible(Id id) const {
    const Module& module = modules_[id];
    return module.has_ops && module.has_modules && (module.numbered || !module.has_blocks);
  }
  // Returns a label per op: equal where ops stay together; empty where an op is alone.
  std::vector<std::string> units(Granularity granularity) const;

 private:
  Id find_or_add(Id parent, const std::string& component, const std::map<std::string, bool>& holds_parameters);

  std::vector<Module> modules_;
  std::vector<std::string> component_;  // by module: the part of the path that names it
  std::map<std::pair<Id, std::string>, Id> by_component_;
  std::vector<Id> module_of_op_;
};

}  // namespace doppler
