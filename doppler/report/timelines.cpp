#include "doppler/report/timelines.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "doppler/base/terminal_text.h"
#include "doppler/report/text.h"
#include "doppler/report/timeline_facts.h"

namespace doppler {
namespace {

// ---- text ----

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr char kOther = '*', kIdle = '.';
constexpr std::size_t kLongestLabel = 24;

class Gantt {
 public:
  Gantt(const Schedule& schedule, std::size_t columns)
      : schedule_(schedule), columns_(columns), letter_of_kind_(schedule.kinds.size(), kOther) {
    const Schedule::Column kinds = kinds_by_time(schedule);
    for (std::size_t i = 0; i < std::min(kinds.size(), kLetters.size()); ++i) letter_of_kind_[kinds[i]] = kLetters[i];
    for (const Schedule::DeviceLane& device : schedule.devices) {
      first_slot_.push_back(slots_);
      slots_ += device.slots;
      name_width_ = std::max(name_width_, for_terminal(device.name, kLongestLabel).size());
    }
  }

  std::string draw() {
    share();
    std::string text;
    for (std::size_t device = 0; device < schedule_.devices.size(); ++device)
      for (unsigned slot = 0; slot < schedule_.devices[device].slots; ++slot)
        text += fmt::format("  {:<{}}  |{}|\n",
                            slot == 0 ? for_terminal(schedule_.devices[device].name, kLongestLabel) : "", name_width_,
                            line(first_slot_[device] + slot));
    const std::string end = format_time(schedule_.makespan, schedule_.unitless);
    text += fmt::format("  {:<{}}   0{:>{}}\n", "", name_width_, end, columns_ - 1);
    return text + legend();
  }

 private:
  struct Cell {
    double taken = 0, longest = 0;
    char letter = kIdle;
  };

  // Gives every op its share of the columns that it touches.
  void share() {
    cells_.assign(slots_ * columns_, {});
    const std::vector<bool> on_chain = ops_of_chain(schedule_);
    const Schedule::Ops& ops = schedule_.ops;
    const double ticks = schedule_.makespan / schedule_.tick;
    const double ticks_per_column = ticks > 0 ? ticks / static_cast<double>(columns_) : 1;
    for (std::size_t op = 0; op < ops.name.size(); ++op) {
      const double begin = ops.start[op] / ticks_per_column, end = begin + ops.takes[op] / ticks_per_column;
      char letter = letter_of_kind_[ops.kind[op]];
      if (on_chain[op]) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
      const std::size_t lane = first_slot_[ops.device[op]] + ops.slot[op];
      for (auto column = static_cast<std::size_t>(begin); column < columns_ && static_cast<double>(column) < end;
           ++column) {
        const auto left = static_cast<double>(column);
        take(cells_[lane * columns_ + column], std::min(end, left + 1) - std::max(begin, left), letter);
      }
    }
  }

  static void take(Cell& cell, double share, char letter) {
    cell.taken += share;
    if (share <= cell.longest) return;
    cell.longest = share;
    cell.letter = letter;
  }

  std::string line(std::size_t lane) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[lane * columns_ + column];
      text += cell.taken >= 0.5 ? cell.letter : kIdle;
    }
    return text;
  }

  std::string legend() const {
    std::string text = "\n ";
    const Schedule::Column kinds = kinds_by_time(schedule_);
    for (std::size_t i = 0; i < std::min(kinds.size(), kLetters.size()); ++i)
      text += fmt::format(" {} {} ", kLetters[i], for_terminal(schedule_.kinds[kinds[i]], kLongestLabel));
    if (kinds.size() > kLetters.size()) text += fmt::format(" {} other kinds ", kOther);
    return text + fmt::format(" {} idle  CAPITALS the critical chain\n", kIdle);
  }

  const Schedule& schedule_;
  std::size_t columns_;
  std::vector<char> letter_of_kind_;
  std::vector<std::size_t> first_slot_;
  std::size_t slots_ = 0, name_width_ = 0;
  std::vector<Cell> cells_;
};

// ---- comma-separated values ----

// RFC 4180: what holds a comma, a quote or a line end stands in quotes.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

}  // namespace

std::string timeline_to_text(const Schedule& schedule, std::size_t columns) { return Gantt(schedule, columns).draw(); }

std::string timeline_to_csv(const Schedule& schedule) {
  std::string text = "what,name,kind,device,slot,from,bytes,ready,start,end\n";
  const auto end = std::back_inserter(text);
  const Schedule::Ops& ops = schedule.ops;
  const double tick = schedule.tick;
  for (std::size_t op = 0; op < ops.name.size(); ++op)
    fmt::format_to(end, "op,{},{},{},{},,,{:.9g},{:.9g},{:.9g}\n", field(ops.name[op]),
                   field(schedule.kinds[ops.kind[op]]), field(schedule.devices[ops.device[op]].name), ops.slot[op],
                   (ops.start[op] - ops.waited[op]) * tick, ops.start[op] * tick,
                   (ops.start[op] + ops.takes[op]) * tick);
  const Schedule::Transfers& transfers = schedule.transfers;
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < transfers.later.size(); ++i) {
    start += transfers.later[i];
    fmt::format_to(end, "transfer,{},,{},,{},{},{:.9g},{:.9g},{:.9g}\n", field(ops.name[transfers.producer[i]]),
                   field(schedule.devices[transfers.dst[i]].name), field(schedule.devices[transfers.src[i]].name),
                   transfers.bytes[i], (start - transfers.waited[i]) * tick, start * tick,
                   (start + transfers.takes[i]) * tick);
  }
  return text;
}

}  // namespace doppler
