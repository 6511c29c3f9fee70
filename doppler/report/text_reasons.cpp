#include "doppler/report/text_reasons.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/report/table.h"
#include "doppler/report/text.h"

namespace doppler {
namespace {

constexpr std::size_t kChainLines = 16, kMovedLines = 20;

std::string share_text(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0.0);
}
std::string change_text(double now, double then) {
  return fmt::format("{:+.1f} %", then > 0 ? 100 * (now / then - 1) : 0.0);
}

// Steps of the chain that follow one another on one device are one line; what the first of them waited for is its
// reason.
struct ChainLine {
  std::size_t first = 0, last = 0;
  Seconds busy = 0;
};
std::vector<ChainLine> lines_of(const std::vector<WhyResult::Step>& chain) {
  std::vector<ChainLine> lines;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const bool joins = !lines.empty() && !chain[i].transfer && chain[i].device == chain[lines.back().last].device &&
                       !chain[lines.back().last].transfer;
    if (!joins) lines.push_back({i, i, 0});
    lines.back().last = i;
    lines.back().busy += chain[i].end - chain[i].start;
  }
  return lines;
}

std::string text_of_chain(const WhyResult& why) {
  Table table({{"chain", Table::Align::left},
               {"on", Table::Align::left},
               {"takes"},
               {"share"},
               {"waits for", Table::Align::left}});
  const std::vector<ChainLine> lines = lines_of(why.chain);
  // The longest lines are shown, in the order of the chain.
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lines[a].busy > lines[b].busy; });
  order.resize(std::min(order.size(), kChainLines));
  std::sort(order.begin(), order.end());
  for (const std::size_t i : order) {
    const ChainLine& line = lines[i];
    const WhyResult::Step &first = why.chain[line.first], &last = why.chain[line.last];
    const std::size_t count = line.last - line.first + 1;
    const std::string what = first.transfer ? fmt::format("result of {}", first.name)
                             : count == 1   ? first.name
                                            : fmt::format("{} … {} ({} ops)", first.name, last.name, count);
    table.add_row({what, first.device, format_time(line.busy, why.unitless), share_text(line.busy, why.makespan),
                   first.waits_for == "nothing" ? "-" : first.waits_for});
  }
  std::string text = table.text();
  if (lines.size() > order.size()) text += fmt::format("  … and {} shorter parts\n", lines.size() - order.size());
  return text;
}

std::string text_of_unit(const WhyResult& why, const WhyResult::Unit& unit) {
  const auto time = [&](Seconds value) { return format_time(value, why.unitless); };
  std::string text =
      fmt::format("\n{} is on {} ({} {}, {}{})\n", unit.name, unit.device, unit.ops, unit.ops == 1 ? "op" : "ops",
                  time(unit.time), unit.cause.empty() ? "" : fmt::format(", its method says '{}'", unit.cause));
  const WhyResult::Elsewhere* best = nullptr;
  Table table({{"if it were on", Table::Align::left}, {"makespan"}, {"change"}, {"", Table::Align::left}});
  for (const WhyResult::Elsewhere& other : unit.elsewhere) {
    if (other.makespan && (best == nullptr || *other.makespan < *best->makespan)) best = &other;
    table.add_row({other.device, other.makespan ? time(*other.makespan) : "-",
                   other.makespan ? change_text(*other.makespan, why.makespan) : "-", other.reason});
  }
  text += table.text();
  if (unit.elsewhere.empty()) return text;
  if (best == nullptr) return text + "it can be nowhere else\n";
  if (*best->makespan > why.makespan)
    return text + fmt::format("any other device makes the whole slower, by {} at least\n",
                              time(*best->makespan - why.makespan));
  if (*best->makespan == why.makespan) return text + fmt::format("'{}' would do as well\n", best->device);
  return text + fmt::format("'{}' would be better, by {}\n", best->device, time(why.makespan - *best->makespan));
}

}  // namespace

std::string text_of(const WhyResult& why) {
  const auto time = [&](Seconds value) { return format_time(value, why.unitless); };
  std::string text =
      fmt::format("makespan     {}{}\n", time(why.makespan), why.feasible ? "" : "  INFEASIBLE: exceeds memory");
  text += fmt::format("limited by   {}: {}\n", why.limit, why.because);
  text +=
      fmt::format("the chain    computes {}, moves data {}, idles {}\n", share_text(why.chain_compute, why.makespan),
                  share_text(why.chain_transfer, why.makespan), share_text(why.chain_idle, why.makespan));
  for (const WhyResult::Help& help : why.help)
    text += fmt::format("would help   {}: {} ({})\n", help.change, time(help.makespan),
                        change_text(help.makespan, why.makespan));
  if (why.help.empty()) text += "would help   nothing that was tried: links, one more device, memory, priorities\n";
  text += "\n" + text_of_chain(why);
  for (const WhyResult::Unit& unit : why.units) text += text_of_unit(why, unit);
  if (!why.transfers.empty()) {
    Table table({{"longest transfers: result of", Table::Align::left},
                 {"from", Table::Align::left},
                 {"to", Table::Align::left},
                 {"size"},
                 {"takes"},
                 {"queues"}});
    for (const WhyResult::LongTransfer& transfer : why.transfers)
      table.add_row({transfer.op, transfer.from, transfer.to, format_bytes(transfer.bytes), time(transfer.seconds),
                     time(transfer.queued)});
    text += "\n" + table.text();
  }
  if (!why.idle.empty()) {
    Table table({{"device", Table::Align::left},
                 {"busy"},
                 {"data"},
                 {"channel"},
                 {"copying"},
                 {"done"},
                 {"waits most for", Table::Align::left}});
    for (const WhyResult::Idle& idle : why.idle)
      table.add_row({idle.device, share_text(idle.time.busy, why.makespan), share_text(idle.time.data, why.makespan),
                     share_text(idle.time.channel, why.makespan), share_text(idle.time.copying, why.makespan),
                     share_text(idle.time.done, why.makespan),
                     idle.blamed.empty() ? "-" : fmt::format("{} ({})", idle.blamed, time(idle.blamed_seconds))});
    text += "\n" + table.text();
  }
  return text;
}

std::string text_of(const DiffResult& diff) {
  const auto time = [&](Seconds value) { return format_time(value, diff.unitless); };
  Table sides(
      {{"", Table::Align::left}, {"makespan"}, {"devices"}, {"moved"}, {"chain computes"}, {"moves data"}, {"idles"}});
  for (const DiffResult::Side* side : {&diff.a, &diff.b})
    sides.add_row({side->placement.empty() ? (side == &diff.a ? "first" : "second") : side->placement,
                   side->feasible ? time(side->makespan) : time(side->makespan) + " INFEASIBLE",
                   fmt::to_string(side->devices), format_bytes(side->moved), time(side->chain_compute),
                   time(side->chain_transfer), time(side->chain_idle)});
  std::string text = sides.text();
  text +=
      fmt::format("\nthe second takes {} ({})\n", time(diff.b.makespan), change_text(diff.b.makespan, diff.a.makespan));
  if (diff.moved.empty()) return text + "every op is on the same device in both\n";
  text += fmt::format("{} ops are on another device\n\n", diff.ops_moved);
  Table table({{"moved", Table::Align::left},
               {"ops"},
               {"from", Table::Align::left},
               {"to", Table::Align::left},
               {"alone"},
               {"change"}});
  for (const DiffResult::Moved& moved : diff.moved) {
    if (&moved - diff.moved.data() == static_cast<std::ptrdiff_t>(kMovedLines)) break;
    table.add_row({moved.name, fmt::to_string(moved.ops), moved.from, moved.to, moved.alone ? time(*moved.alone) : "-",
                   moved.alone ? change_text(*moved.alone, diff.a.makespan) : "-"});
  }
  text += table.text();
  if (diff.moved.size() > kMovedLines) text += fmt::format("  … and {} more\n", diff.moved.size() - kMovedLines);
  return text;
}

std::string text_of(const MachineList& list) {
  Table kinds({{"kind", Table::Align::left}, {"memory"}, {"", Table::Align::left}, {"source", Table::Align::left}});
  for (const MachineList::Entry& entry : list.kinds)
    kinds.add_row({entry.name, format_bytes(entry.memory), entry.summary, entry.source});
  Table presets({{"machine", Table::Align::left}, {"memory"}, {"", Table::Align::left}});
  for (const MachineList::Entry& entry : list.presets)
    presets.add_row({entry.name, format_bytes(entry.memory), entry.summary});
  return "Kinds of devices, for --machine KIND:N or KIND:N+KIND:N, such as h100:8 or rtx4090:1+rtx3060:1\n\n" +
         kinds.text() + "\nMachines\n\n" + presets.text() +
         "\nuniform:N has N equal devices for graphs with times of their own, uniform:N:16GiB such with a memory.\n";
}

std::string text_of(const SplitResult& split) {
  Table table({{"part", Table::Align::left},
               {"device", Table::Align::left},
               {"level"},
               {"nodes"},
               {"parameters"},
               {"receives"},
               {"gives"}});
  const auto total = [](const std::vector<SplitResult::Value>& values) {
    Bytes bytes = 0;
    for (const SplitResult::Value& value : values) bytes += value.bytes;
    return fmt::format("{} ({})", format_bytes(bytes), values.size());
  };
  for (const SplitResult::Part& part : split.parts)
    table.add_row({part.file, part.device, std::to_string(part.level), std::to_string(part.nodes),
                   format_bytes(part.parameter_bytes), total(part.inputs), total(part.outputs)});
  return table.text() +
         (split.unchecked.empty()
              ? "every part is valid by ONNX's checker\n"
              : fmt::format("not all checked, for ONNX's checker refuses the whole model: {}\n", split.unchecked));
}

}  // namespace doppler
