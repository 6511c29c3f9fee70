#include "doppler/graph/formats/stg.h"

#include "doppler/base/error.h"
#include "doppler/graph/formats/text_reader.h"

namespace doppler {
namespace {

constexpr std::string_view kStgSeparators = " \t\r";
constexpr OpId kNoOp = std::numeric_limits<OpId>::max();

struct Dependence {
  std::uint64_t predecessor;
  OpId op;
};

std::uint64_t read_task_count(const std::string& where, formats::TextReader& reader, std::size_t content_size) {
  reader.skip_to_content("#");
  formats::TextLine header = reader.next_line("the number of tasks");
  const std::uint64_t tasks = header.integer("the number of tasks");
  // A row takes at least six characters; so much for counts that would only exhaust the memory.
  if (tasks > content_size)
    throw InputError(
        fmt::format("{}: {} tasks announced in {} bytes; required one row per task", where, tasks, content_size));
  header.next_integer();  // older files give the number of processors here
  header.expect_end();
  return tasks;
}

}  // namespace

LoadedGraph parse_stg(const std::string& where, std::string_view content) {
  formats::TextReader reader(where, content, kStgSeparators);
  const std::uint64_t tasks = read_task_count(where, reader, content.size());
  const std::uint64_t ids = tasks + 2;  // with the dummies 0 and tasks + 1
  GraphBuilder builder(where);
  builder.set_unitless(true);
  std::vector<OpId> op_of_task(ids, kNoOp);
  std::vector<Dependence> dependences;
  while (reader.skip_to_content("#")) {
    formats::TextLine row = reader.next_line("a task");
    const std::uint64_t task = row.integer("a task number");
    if (task >= ids) throw InputError(fmt::format("{}: task {}; required at most {}", row.where(), task, ids - 1));
    if (op_of_task[task] != kNoOp)
      throw InputError(fmt::format("{}: task {} again; required each task once", row.where(), task));
    const double time = row.number("a processing time");
    std::uint64_t predecessors = row.integer("the number of predecessors");
    OpSpec spec;
    spec.name = std::to_string(task);
    spec.explicit_times["*"] = time;
    const OpId op = builder.add_op(std::move(spec));
    op_of_task[task] = op;
    for (; predecessors > 0; --predecessors) dependences.push_back({row.integer("a predecessor"), op});
    row.expect_end();
  }
  // Task 0 may be missing: some old files have only the final dummy.
  for (std::uint64_t task = 1; task < ids; ++task)
    if (op_of_task[task] == kNoOp)
      throw InputError(fmt::format("{}: task {} is missing; required tasks 1 to {}", where, task, ids - 1));
  for (OpId op = 0; op < builder.op_count(); ++op) builder.add_tensor(op, 0, 0.0);  // tensor id = op id
  for (const auto& [predecessor, op] : dependences) {
    if (predecessor >= ids || op_of_task[predecessor] == kNoOp)
      throw InputError(fmt::format("{}: a task has predecessor {}; required a task of the file", where, predecessor));
    builder.add_consumer(op_of_task[predecessor], op);
  }
  return {std::move(builder).build(), "stg", {}};
}

}  // namespace doppler
