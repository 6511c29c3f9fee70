#include "doppler/graph/formats/wfcommons.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "doppler/base/error.h"
#include "doppler/graph/formats/json_reader.h"

namespace doppler {
namespace {

using formats::Json;
using formats::JsonFields;

struct File {
  std::string id;
  Bytes bytes;
};

struct Run {
  Seconds runtime;
  std::string program;
};

struct Task {
  std::string id;     // by which tasks refer to each other, and the name of the op
  std::string alias;  // schema 1.4: the second way to refer to it
  std::vector<std::string> parents, children, inputs, outputs;
};

struct Workflow {
  std::vector<Task> tasks;
  std::unordered_map<std::string, Bytes> file_bytes;
  std::unordered_map<std::string, Run> runs;  // by task id
};

std::vector<std::string> without_repeats(std::vector<std::string> texts) {
  std::set<std::string> seen;
  std::erase_if(texts, [&](const std::string& text) { return !seen.insert(text).second; });
  return texts;
}

Run read_run(const JsonFields& task) {
  Run run{task.number("runtimeInSeconds"), ""};
  if (const Json* command = task.find("command"))
    run.program = JsonFields(task.where() + ": command", *command).string_or("program", "");
  return run;
}

// ---- reading: schema 1.4 has everything in one place, 1.5 and 1.6 separate the workflow from its execution
// ----

class WfCommonsReader {
 public:
  explicit WfCommonsReader(const std::string& where) : where_(where) {}

  Workflow read(std::string_view content) {
    const auto to = [this](auto read_one) {
      return [this, read_one](std::size_t index, const Json& element) { (this->*read_one)(index, element); };
    };
    const formats::JsonSection sections[] = {{"workflow.tasks", to(&WfCommonsReader::read_old_task)},
                                             {"workflow.specification.tasks", to(&WfCommonsReader::read_task)},
                                             {"workflow.specification.files", to(&WfCommonsReader::read_file)},
                                             {"workflow.execution.tasks", to(&WfCommonsReader::read_execution)}};
    const Json file = formats::parse_json(where_, content, sections);
    const JsonFields head(where_, file);
    const std::string& version = head.string("schemaVersion");
    if (version != "1.4" && version != "1.5" && version != "1.6")
      head.fail("schemaVersion", "\"1.4\", \"1.5\" or \"1.6\"");
    if ((version == "1.4") != old_ && !workflow_.tasks.empty())
      head.fail("schemaVersion", old_ ? "\"1.4\", because there are 'workflow.tasks'"
                                      : "\"1.5\" or \"1.6\", because there are 'workflow.specification.tasks'");
    return std::move(workflow_);
  }

 private:
  void read_old_task(std::size_t index, const Json& element) {
    old_ = true;
    const JsonFields fields(fmt::format("{}: task {}", where_, index), element);
    Task task{fields.string("name"),
              fields.string_or("id", ""),
              fields.strings("parents"),
              fields.strings("children"),
              {},
              {}};
    if (const Json* files = fields.find("files")) {
      if (!files->is_array()) fields.fail("files", "an array");
      for (const Json& file : *files) read_old_file(JsonFields(fields.where() + ": file", file), task);
    }
    task.inputs = without_repeats(std::move(task.inputs));
    task.outputs = without_repeats(std::move(task.outputs));
    workflow_.runs.emplace(task.id, read_run(fields));
    workflow_.tasks.push_back(std::move(task));
  }

  void read_old_file(const JsonFields& fields, Task& task) {
    const std::string& link = fields.string("link");
    if (link != "input" && link != "output") fields.fail("link", "\"input\" or \"output\"");
    const std::string id = fields.string_or("path", "") + fields.string("name");
    add_file(fields, id, fields.bytes("sizeInBytes"));
    (link == "input" ? task.inputs : task.outputs).push_back(id);
  }

  void read_task(std::size_t index, const Json& element) {
    const JsonFields fields(fmt::format("{}: task {}", where_, index), element);
    workflow_.tasks.push_back({fields.string("id"), "", fields.strings("parents"), fields.strings("children"),
                               without_repeats(fields.strings("inputFiles")),
                               without_repeats(fields.strings("outputFiles"))});
  }

  void read_file(std::size_t index, const Json& element) {
    const JsonFields fields(fmt::format("{}: file {}", where_, index), element);
    add_file(fields, fields.string("id"), fields.bytes("sizeInBytes"));
  }

  void add_file(const JsonFields& fields, const std::string& id, Bytes bytes) {
    const auto [known, added] = workflow_.file_bytes.emplace(id, bytes);
    if (known->second != bytes)
      fields.fail("sizeInBytes", fmt::format("{} as before for file '{}'", known->second, id));
  }

  void read_execution(std::size_t index, const Json& element) {
    const JsonFields fields(fmt::format("{}: execution of task {}", where_, index), element);
    if (!workflow_.runs.emplace(fields.string("id"), read_run(fields)).second) fields.fail("id", "each task once");
  }

  const std::string& where_;
  Workflow workflow_;
  bool old_ = false;
};

// ---- building ----

class WorkflowBuilder {
 public:
  WorkflowBuilder(const std::string& where, Workflow workflow)
      : where_(where), workflow_(std::move(workflow)), builder_(where) {}

  Graph build() {
    for (const Task& task : workflow_.tasks) add_op(task);
    for (OpId op = 0; op < builder_.op_count(); ++op) add_outputs(op);
    for (OpId op = 0; op < builder_.op_count(); ++op) find_dependences(op);
    for (OpId op = 0; op < builder_.op_count(); ++op) connect_inputs(op);
    connect_dependences_without_file();
    return std::move(builder_).build();
  }

 private:
  struct Written {
    OpId writer;
    TensorId tensor;
  };
  using Dependence = std::pair<OpId, OpId>;  // parent, child

  void add_op(const Task& task) {
    const auto run = workflow_.runs.find(task.id);
    if (run == workflow_.runs.end())
      throw InputError(
          fmt::format("{}: task '{}' has no 'runtimeInSeconds'; required one entry per task in "
                      "'workflow.execution.tasks'",
                      where_, task.id));
    OpSpec op;
    op.name = task.id;
    if (!run->second.program.empty()) op.kind = run->second.program;
    op.explicit_times["*"] = run->second.runtime;
    op_of_id_.emplace(task.id, builder_.op_count());
    builder_.add_op(std::move(op));
  }

  void add_outputs(OpId op) {
    const Task& task = workflow_.tasks[op];
    if (!task.alias.empty()) op_of_id_.emplace(task.alias, op);  // names come first
    for (const std::string& file : task.outputs) {
      const auto bytes = workflow_.file_bytes.find(file);
      if (bytes == workflow_.file_bytes.end())
        throw InputError(
            fmt::format("{}: task '{}' writes file '{}', whose size is unknown; required it in "
                        "'workflow.specification.files'",
                        where_, task.id, file));
      written_[file].push_back({op, builder_.add_tensor(op, bytes->second)});
    }
  }

  OpId op_of(const Task& task, const std::string& other) const {
    const auto found = op_of_id_.find(other);
    if (found == op_of_id_.end())
      throw InputError(fmt::format("{}: task '{}' depends on or precedes '{}'; required a task of the file", where_,
                                   task.id, other));
    return found->second;
  }

  void find_dependences(OpId op) {
    const Task& task = workflow_.tasks[op];
    for (const std::string& parent : task.parents) declared_.emplace(op_of(task, parent), op);
    for (const std::string& child : task.children) declared_.emplace(op, op_of(task, child));
  }

  // Files that no task writes are there from the start, on every device.
  void connect_inputs(OpId op) {
    const Task& task = workflow_.tasks[op];
    for (const std::string& file : task.inputs) {
      const auto found = written_.find(file);
      if (found == written_.end()) continue;
      // A task may read and write one file; that is no dependence on itself.
      std::vector<Written> sources = found->second;
      std::erase_if(sources, [&](const Written& source) { return source.writer == op; });
      // Which of several versions it reads, only the declared parents can say.
      if (sources.size() > 1)
        std::erase_if(sources, [&](const Written& source) { return !declared_.contains({source.writer, op}); });
      if (sources.empty() && found->second.size() > 1)
        throw InputError(
            fmt::format("{}: task '{}' reads file '{}', which {} tasks write; required one of them among "
                        "its parents",
                        where_, task.id, file, found->second.size()));
      for (const auto& [writer, tensor] : sources) {
        builder_.add_consumer(tensor, op);
        connected_.emplace(writer, op);
      }
    }
  }

  void connect_dependences_without_file() {
    std::unordered_map<OpId, TensorId> signal_of_op;
    for (const Dependence& dependence : declared_) {
      if (connected_.contains(dependence)) continue;
      const auto [parent, child] = dependence;
      if (!signal_of_op.contains(parent)) signal_of_op[parent] = builder_.add_tensor(parent, 0);
      builder_.add_consumer(signal_of_op[parent], child);
    }
  }

  const std::string& where_;
  Workflow workflow_;
  GraphBuilder builder_;
  std::unordered_map<std::string, OpId> op_of_id_;
  std::unordered_map<std::string, std::vector<Written>> written_;  // by file
  std::set<Dependence> declared_, connected_;
};

}  // namespace

LoadedGraph parse_wfcommons(const std::string& where, std::string_view content) {
  return {WorkflowBuilder(where, WfCommonsReader(where).read(content)).build(), "wfcommons", {}};
}

}  // namespace doppler
