#include "doppler/problem/times.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/statistics.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/problem/graph_files.h"
#include "doppler/problem/modules.h"

namespace doppler {
namespace {

constexpr Seconds kUnmeasured = std::numeric_limits<Seconds>::quiet_NaN();
constexpr std::size_t kUnmatchedShown = 3;

// The cells of one line; a cell in double quotes may hold commas, and "" in it is a quote.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      cells.emplace_back();
    else if (line[i] != '\r')
      cells.back() += line[i];
  }
  return cells;
}

std::optional<Seconds> seconds_of(const std::string& text) {
  Seconds value = 0;
  const char *first = text.data(), *last = text.data() + text.size();
  while (first < last && *first == ' ') ++first;
  while (first < last && last[-1] == ' ') --last;
  if (first == last || std::from_chars(first, last, value) != std::from_chars_result{last, {}}) return std::nullopt;
  return value;
}

std::vector<TimeRow> parse_csv(const std::string& where, std::string_view text) {
  std::vector<TimeRow> rows;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].find_first_not_of(" \t") == std::string::npos) continue;
    if (line.front() == '#') continue;
    const std::optional<Seconds> seconds = cells.size() > 1 ? seconds_of(cells[1]) : std::nullopt;
    if (!seconds && rows.empty() && number == 1 && cells.size() > 1) continue;  // a heading
    if (!seconds || cells.size() > 3 || cells[0].empty())
      throw InputError(fmt::format("{}:{}: found '{}'; required name,seconds or name,seconds,device type", where,
                                   number, line.substr(0, 80)));
    if (!(*seconds >= 0 && *seconds <= kLargestCost))
      throw InputError(fmt::format("{}:{}: '{}' takes {} s; required between 0 and {:g}", where, number, cells[0],
                                   *seconds, kLargestCost));
    rows.push_back({cells[0], *seconds, cells.size() > 2 ? cells[2] : ""});
  }
  return rows;
}

// The type of device of an execution provider, such as CUDAExecutionProvider.
std::string type_of_provider(const std::string& provider) {
  if (provider.starts_with("CPU")) return "cpu";
  for (const char* gpu : {"CUDA", "Tensorrt", "ROCM", "MIGraphX", "Dml"})
    if (provider.starts_with(gpu)) return "gpu";
  return {};
}

// One event of a trace; only complete ones ("X") have a duration, in microseconds.
void add_event(const std::string& where, std::size_t index, const nlohmann::json& event, std::vector<TimeRow>& rows) {
  constexpr std::string_view kKernelTime = "_kernel_time";
  if (!event.is_object() || event.value("ph", nlohmann::json()) != "X") return;
  if (event.value("cat", nlohmann::json()) == "transfer") return;  // of a trace of ours
  const auto name = event.find("name"), duration = event.find("dur");
  if (name == event.end() || !name->is_string() || duration == event.end() || !duration->is_number() ||
      !(duration->get<double>() >= 0))
    throw InputError(fmt::format("{}: event {}: found {}; required a name and a duration that is not negative", where,
                                 index, formats::shown(event)));
  TimeRow row{name->get<std::string>(), microseconds(duration->get<double>()), {}};
  const bool of_runtime = event.value("cat", nlohmann::json()) == "Node";
  if (row.name.ends_with(kKernelTime))
    row.name.resize(row.name.size() - kKernelTime.size());
  else if (of_runtime)
    return;  // ONNX Runtime's fences before and after a kernel
  if (const auto arguments = event.find("args"); arguments != event.end() && arguments->is_object())
    if (const auto provider = arguments->find("provider"); provider != arguments->end() && provider->is_string())
      row.type = type_of_provider(provider->get<std::string>());
  rows.push_back(std::move(row));
}

std::vector<TimeRow> parse_trace(const std::string& where, std::string_view text) {
  std::vector<TimeRow> rows;
  const formats::JsonSection events{
      "traceEvents", [&](std::size_t index, const nlohmann::json& event) { add_event(where, index, event, rows); }};
  const nlohmann::json file = formats::parse_json(where, text, std::span(&events, 1));
  if (file.is_array())
    for (std::size_t i = 0; i < file.size(); ++i) add_event(where, i, file[i], rows);
  else if (!file.contains("traceEvents"))
    throw InputError(fmt::format("{}: no 'traceEvents'; required a trace, or CSV of name,seconds", where));
  return rows;
}

// The times of one file for devices of one type, op by op.
class TypedTimes {
 public:
  TypedTimes(const GraphFile& file, const Modules& modules, const Machine& machine, const std::string& type)
      : graph_(*file.graph), modules_(modules), time_of_op_(graph_.op_count(), kUnmeasured) {
    DeviceId device = 0;
    while (device < machine.device_count() && machine.device(device).type != type) ++device;
    if (device == machine.device_count())
      throw InputError(
          fmt::format("machine '{}': no device of type '{}'; required one for its times", machine.name(), type));
    const Costs costs(file.graph, std::make_shared<Machine>(machine));
    for (OpId op = 0; op < graph_.op_count(); ++op) modelled_.push_back(costs.op_time(op, device));
  }

  // Rows of ops first, then of modules, for what is left.
  void match(const std::map<std::string, std::vector<Seconds>>& rows) {
    std::map<std::string, Modules::Id> module_called;
    for (Modules::Id id = 0; id < modules_.size(); ++id) module_called.emplace(modules_[id].name, id);
    std::vector<std::pair<Modules::Id, Seconds>> of_modules;
    for (const auto& [name, times] : rows) {
      Seconds mean = 0;
      for (const Seconds time : times) mean += time / static_cast<double>(times.size());
      const OpId op = graph_.find_op(name);
      const auto module = module_called.find(name);
      if (op < graph_.op_count())
        time_of_op_[op] = mean;
      else if (module != module_called.end())
        of_modules.emplace_back(module->second, mean);
      else
        unmatched_.push_back(name);
    }
    // Inner modules have larger ids, and say more.
    std::sort(of_modules.rbegin(), of_modules.rend());
    for (const auto& [module, seconds] : of_modules) share_out(module, seconds);
  }

  std::vector<Seconds> with_guesses() {
    std::vector<double> all;
    std::map<std::uint32_t, std::vector<double>> by_kind;
    for (OpId op = 0; op < graph_.op_count(); ++op) {
      if (std::isnan(time_of_op_[op])) continue;
      ++measured_;
      measured_seconds_ += time_of_op_[op];
      if (!(modelled_[op] > 0) || !std::isfinite(modelled_[op])) continue;
      all.push_back(time_of_op_[op] / modelled_[op]);
      by_kind[graph_.kind_id(op)].push_back(all.back());
    }
    scale_ = all.empty() ? 1 : quantile(all, 0.5);
    std::vector<Seconds> times = time_of_op_;
    for (OpId op = 0; op < graph_.op_count(); ++op) {
      if (!std::isnan(times[op]) || !std::isfinite(modelled_[op])) continue;
      const auto kind = by_kind.find(graph_.kind_id(op));
      times[op] = modelled_[op] * (kind == by_kind.end() ? scale_ : quantile(kind->second, 0.5));
      guessed_seconds_ += times[op];
    }
    return times;
  }

  std::size_t measured() const { return measured_; }
  std::string report(const std::string& where, const std::string& type) const {
    const double whole = measured_seconds_ + guessed_seconds_;
    std::string text = fmt::format("{}: {} of {} ops are measured on '{}', {:.1f} % of the time", where, measured_,
                                   graph_.op_count(), type, whole > 0 ? 100 * measured_seconds_ / whole : 100.0);
    if (measured_ < graph_.op_count())
      text += fmt::format("; the rest is modelled and scaled as ops of the same kind were (all: {:.3g} times)", scale_);
    if (!unmatched_.empty())
      text += fmt::format(
          "; {} names match no op: {}{}", unmatched_.size(),
          fmt::join(unmatched_.begin(),
                    unmatched_.begin() + static_cast<std::ptrdiff_t>(std::min(unmatched_.size(), kUnmatchedShown)),
                    ", "),
          unmatched_.size() > kUnmatchedShown ? ", …" : "");
    return text;
  }

 private:
  // A module's time less what is measured within goes to its other ops as they are modelled.
  void share_out(Modules::Id module, Seconds seconds) {
    std::vector<OpId> open;
    Seconds modelled = 0;
    for (OpId op = 0; op < graph_.op_count(); ++op) {
      Modules::Id around = modules_.of(op);
      while (around != Modules::kNone && around != module) around = modules_[around].parent;
      if (around == Modules::kNone) continue;
      if (!std::isnan(time_of_op_[op])) {
        seconds -= time_of_op_[op];
      } else if (std::isfinite(modelled_[op])) {
        open.push_back(op);
        modelled += modelled_[op];
      }
    }
    for (const OpId op : open)
      time_of_op_[op] =
          std::max(0.0, seconds) * (modelled > 0 ? modelled_[op] / modelled : 1.0 / static_cast<double>(open.size()));
  }

  const Graph& graph_;
  const Modules& modules_;
  std::vector<Seconds> modelled_, time_of_op_;
  std::vector<std::string> unmatched_;
  std::size_t measured_ = 0;
  Seconds measured_seconds_ = 0, guessed_seconds_ = 0;
  double scale_ = 1;
};

}  // namespace

std::vector<TimeRow> parse_times(const std::string& where, std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool is_json = start != std::string_view::npos && (text[start] == '{' || text[start] == '[');
  std::vector<TimeRow> rows = is_json ? parse_trace(where, text) : parse_csv(where, text);
  if (rows.empty()) throw InputError(fmt::format("{}: found no times; required name,seconds or a trace", where));
  return rows;
}

void apply_times(GraphFile& file, const Machine& machine, const std::vector<std::string>& paths) {
  if (file.graph->unitless())
    throw InputError(fmt::format("{}: its times have no unit; required seconds for --times", file.path));
  const Modules modules(*file.graph, file.onnx ? file.onnx->parameter_names() : std::vector<std::string>());
  for (const std::string& path : paths) {
    std::map<std::string, std::map<std::string, std::vector<Seconds>>> rows_of_type;
    for (const TimeRow& row : parse_times(path, read_file(path)))
      rows_of_type[row.type.empty() ? machine.device(0).type : row.type][row.name].push_back(row.seconds);
    std::size_t measured = 0;
    std::string example;
    std::vector<std::string> reports;
    std::shared_ptr<const Graph> timed = file.graph;
    for (const auto& [type, rows] : rows_of_type) {
      TypedTimes times(file, modules, machine, type);
      times.match(rows);
      example = rows.begin()->first;
      timed = std::make_shared<Graph>(timed->with_times(type, times.with_guesses()));
      measured += times.measured();
      reports.push_back(times.report(path, type));
    }
    if (measured == 0)
      throw InputError(fmt::format("{}: no name, such as '{}', is that of an op or module of {}; required some", path,
                                   example, file.path));
    file.graph = std::move(timed);
    file.warnings.insert(file.warnings.end(), reports.begin(), reports.end());
  }
}

}  // namespace doppler
