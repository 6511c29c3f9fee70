#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "doppler/report/plot.h"
#include "doppler/report/text.h"
#include "doppler/report/timeline_facts.h"
#include "doppler/report/timelines.h"

namespace doppler {
namespace {

// Pixels.
constexpr double kPictureWidth = 960, kGutter = 96, kMarginRight = 12, kTitleHeight = 24, kLaneHeight = 18,
                 kTransferHeight = 5;
constexpr double kLaneGap = 4, kAxisHeight = 22, kLegendHeight = 24, kThinnest = 0.7, kLetterWidth = 6.4;
constexpr double kPlotWidth = kPictureWidth - kGutter - kMarginRight;
// Okabe and Ito (2008), as on the page of reports; the last is for every other kind.
constexpr std::array kKindColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                     "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"};
constexpr const char* kTransferColour = "#9a9a9a";
constexpr const char* kChainColour = "#d00000";

struct Bar {
  double from = 0, to = 0;  // pixels
  std::uint32_t colour = 0;
};

class TimelinesPicture {
 public:
  explicit TimelinesPicture(const std::vector<NamedSchedule>& timelines) : timelines_(timelines) {
    for (const NamedSchedule& timeline : timelines) longest_ = std::max(longest_, timeline.schedule->makespan);
    if (longest_ <= 0) longest_ = 1;
    choose_colours();
  }

  std::string draw() {
    for (const NamedSchedule& timeline : timelines_) draw_timeline(timeline);
    draw_axis();
    draw_legend();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#ffffff\"/>\n{2}</svg>\n",
        kPictureWidth, y_, parts_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(parts_), format, std::forward<Args>(args)...);
  }
  void text(double x, double y, const std::string& words, const char* anchor = "start", const char* weight = "normal") {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-weight=\"{}\">{}</text>\n", x, y, anchor, weight,
        escaped_for_svg(words));
  }

  // One colour per name of a kind, the same in every timeline: those that take longest in the first one are told apart.
  void choose_colours() {
    for (const NamedSchedule& timeline : timelines_)
      for (const std::uint32_t kind : kinds_by_time(*timeline.schedule)) {
        const auto next = static_cast<std::uint32_t>(std::min(colour_of_kind_.size(), kKindColours.size() - 1));
        if (colour_of_kind_.try_emplace(timeline.schedule->kinds[kind], next).second && next + 1 < kKindColours.size())
          legend_.emplace_back(timeline.schedule->kinds[kind]);
      }
  }

  double pixel(Seconds time) const { return kGutter + time / longest_ * kPlotWidth; }

  void draw_timeline(const NamedSchedule& timeline) {
    const Schedule& schedule = *timeline.schedule;
    text(4, y_ + 16, fmt::format("{}: {}", timeline.name, format_time(schedule.makespan, schedule.unitless)), "start",
         "bold");
    y_ += kTitleHeight;
    std::vector<double> top_of_device;
    for (const Schedule::DeviceLane& device : schedule.devices) {
      top_of_device.push_back(y_);
      text(kGutter - 8, y_ + kLaneHeight - 5, shortened(device.name), "end");
      y_ += device.slots * (kLaneHeight + kLaneGap) + kTransferHeight + kLaneGap;
    }
    draw_ops(schedule, top_of_device);
    draw_transfers(schedule, top_of_device);
    const double end = pixel(schedule.makespan);
    add("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#000000\"/>\n", end,
        top_of_device.empty() ? y_ : top_of_device.front(), y_);
  }

  static std::string shortened(const std::string& name) {
    constexpr std::size_t kMost = 12;
    return name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
  }

  void draw_ops(const Schedule& schedule, const std::vector<double>& top_of_device) {
    const Schedule::Ops& ops = schedule.ops;
    std::map<double, std::vector<Bar>> lanes;  // by their upper edge
    const std::vector<bool> on_chain = ops_of_chain(schedule);
    std::string chain;
    for (std::size_t op = 0; op < ops.name.size(); ++op) {
      const double top = top_of_device[ops.device[op]] + ops.slot[op] * (kLaneHeight + kLaneGap);
      const double from = pixel(ops.start[op] * schedule.tick),
                   to = pixel((ops.start[op] + ops.takes[op]) * schedule.tick);
      lanes[top].push_back({from, to, colour_of_kind_.at(schedule.kinds[ops.kind[op]])});
      if (on_chain[op])
        fmt::format_to(std::back_inserter(chain), "M{:.1f} {:.1f}H{:.1f}", from, top + kLaneHeight + 1.5,
                       std::max(to, from + 1));
    }
    for (auto& [top, bars] : lanes) draw_bars(bars, top, kLaneHeight);
    if (!chain.empty()) add("<path d=\"{}\" stroke=\"{}\" stroke-width=\"2\"/>\n", chain, kChainColour);
  }

  // Bars that begin where the one before ended share a path of one colour; those thinner than a pixel are drawn together.
  void draw_bars(std::vector<Bar>& bars, double top, double height) {
    std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.from < b.from; });
    std::array<std::string, kKindColours.size()> paths;
    double covered = 0;
    for (const Bar& bar : bars) {
      const double from = std::max(bar.from, covered), to = std::max(bar.to, from + kThinnest);
      if (bar.to <= covered) continue;
      const double inset = to - from > 3 ? 0.5 : 0;  // neighbours of one colour stay two bars
      fmt::format_to(std::back_inserter(paths[bar.colour]), "M{:.1f} {:.1f}H{:.1f}v{}H{:.1f}z", from, top, to - inset,
                     height, from);
      covered = to;
    }
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (!paths[i].empty()) add("<path d=\"{}\" fill=\"{}\"/>\n", paths[i], kKindColours[i]);
  }

  void draw_transfers(const Schedule& schedule, const std::vector<double>& top_of_device) {
    const Schedule::Transfers& transfers = schedule.transfers;
    std::vector<double> covered(schedule.devices.size(), 0);
    std::uint32_t start = 0;
    std::string path;
    for (std::size_t i = 0; i < transfers.later.size(); ++i) {
      start += transfers.later[i];
      const std::uint32_t dst = transfers.dst[i];
      const double from = std::max(covered[dst], pixel(start * schedule.tick));
      const double to = std::max(pixel((start + transfers.takes[i]) * schedule.tick), from + kThinnest);
      if (to <= covered[dst]) continue;
      const double top = top_of_device[dst] + schedule.devices[dst].slots * (kLaneHeight + kLaneGap);
      fmt::format_to(std::back_inserter(path), "M{:.1f} {:.1f}H{:.1f}v{}H{:.1f}z", from, top, to, kTransferHeight,
                     from);
      covered[dst] = to;
    }
    if (!path.empty()) add("<path d=\"{}\" fill=\"{}\"/>\n", path, kTransferColour);
  }

  void draw_axis() {
    constexpr double kSteps = 8;  // about so many
    const bool unitless = !timelines_.empty() && timelines_.front().schedule->unitless;
    add("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#000000\"/>\n", kGutter, y_ + 2, kPictureWidth - kMarginRight);
    const double step = tick_distance(longest_ / kSteps);
    for (int i = 0; i * step <= longest_; ++i) {
      const double x = pixel(i * step);
      add("<path d=\"M{0:.1f} {1:.1f}v4\" stroke=\"#000000\"/>\n", x, y_ + 2);
      if (x < kPictureWidth - 2 * kMarginRight)  // else its words would not fit
        text(x, y_ + 18, i == 0 ? "0" : format_time(i * step, unitless), "middle");
    }
    y_ += kAxisHeight;
  }

  void draw_legend() {
    double x = kGutter;
    const auto entry = [&](const char* colour, const std::string& name) {
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x, y_ + 6, colour);
      text(x + 14, y_ + 15, name);
      x += 30 + kLetterWidth * static_cast<double>(name.size());
    };
    for (std::size_t i = 0; i < legend_.size(); ++i) entry(kKindColours[i], shortened(legend_[i]));
    if (colour_of_kind_.size() > legend_.size()) entry(kKindColours.back(), "other kinds");
    entry(kTransferColour, "transfers");
    entry(kChainColour, "critical chain");
    y_ += kLegendHeight;
  }

  const std::vector<NamedSchedule>& timelines_;
  Seconds longest_ = 0;
  double y_ = 4;
  std::string parts_;
  std::map<std::string, std::uint32_t> colour_of_kind_;
  std::vector<std::string> legend_;
};

}  // namespace

std::string timelines_to_svg(const std::vector<NamedSchedule>& timelines) { return TimelinesPicture(timelines).draw(); }

}  // namespace doppler
