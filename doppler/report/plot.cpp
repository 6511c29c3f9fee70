#include "doppler/report/plot.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// Pixels.
constexpr double kWidth = 760, kHeight = 480, kLeft = 84, kRight = 20, kTop = 44, kBottom = 60;
constexpr double kLegendLine = 17;
constexpr double kMargin = 0.05;  // of the range, beside the outermost points
constexpr int kTicks = 6;         // about so many per axis
// Okabe and Ito (2008).
constexpr const char* kPalette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // With room at both ends; the lower end stays if it is to be 0.
  Range widened(bool from_zero) const {
    Range result = low <= high ? *this : Range{0, 1};
    if (from_zero) result.include(0);
    double room = kMargin * (result.high - result.low);
    if (room == 0) room = result.high == 0 ? 1 : 0.5 * std::abs(result.high);
    if (!from_zero || result.low < 0) result.low -= room;
    result.high += room;
    return result;
  }
};

bool drawn(double x, double y) { return std::isfinite(x) && std::isfinite(y); }

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const Plot::Series& series : plot.series) {
      DOPPLER_CHECK(series.x.size() == series.y.size(), "series '{}': {} x and {} y", series.label, series.x.size(),
                    series.y.size());
      for (std::size_t i = 0; i < series.x.size(); ++i)
        if (drawn(series.x[i], series.y[i])) x_.include(series.x[i]), y_.include(series.y[i]);
    }
    if (plot.diagonal && x_.low <= x_.high) x_.include(y_.low), x_.include(y_.high), y_ = x_;
    x_ = x_.widened(plot.diagonal && plot.from_zero);
    y_ = y_.widened(plot.from_zero);
  }

  std::string draw() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" )"
        R"(font-family="sans-serif" font-size="13">)"
        "\n",
        kWidth, kHeight, kWidth, kHeight);
    add(R"(<rect width="{}" height="{}" fill="white"/>)"
        "\n",
        kWidth, kHeight);
    draw_axes();
    if (plot_.diagonal) line(x_.low, x_.low, x_.high, x_.high, "#888888", "6 4");
    for (const Plot::Mark& mark : plot_.marks) draw_mark(mark);
    for (std::size_t i = 0; i < plot_.series.size(); ++i) draw_series(plot_.series[i], colour(i));
    draw_legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  double left(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight); }
  double top(double y) const {
    return kHeight - kBottom - (y - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  std::string colour(std::size_t series) const {
    const std::string& given = plot_.series[series].colour;
    return given.empty() ? kPalette[series % std::size(kPalette)] : escaped_for_svg(given);
  }
  void line(double x1, double y1, double x2, double y2, const char* stroke, const char* dashes) {
    add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-dasharray="{}"/>)"
        "\n",
        left(x1), top(y1), left(x2), top(y2), stroke, dashes);
  }
  void words(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)"
        "\n",
        x, y, anchor, more, escaped_for_svg(text));
  }

  void draw_axes() {
    const auto each_tick = [](const Range& range, auto draw_tick) {
      const double step = tick_distance((range.high - range.low) / kTicks);
      for (double n = std::ceil(range.low / step); n * step <= range.high; ++n) draw_tick(n * step + 0.0);  // never -0
    };
    each_tick(x_, [&](double x) {
      line(x, y_.low, x, y_.high, "#e4e4e4", "none");
      words(left(x), kHeight - kBottom + 18, "middle", fmt::format("{:.6g}", x));
    });
    each_tick(y_, [&](double y) {
      line(x_.low, y, x_.high, y, "#e4e4e4", "none");
      words(kLeft - 7, top(y) + 4, "end", fmt::format("{:.6g}", y));
    });
    line(x_.low, y_.low, x_.high, y_.low, "#333333", "none");
    line(x_.low, y_.low, x_.low, y_.high, "#333333", "none");
    words(kWidth / 2, 24, "middle", plot_.title, R"( font-size="16")");
    words((kLeft + kWidth - kRight) / 2, kHeight - 16, "middle", plot_.x_title);
    const double middle = (kTop + kHeight - kBottom) / 2;
    words(20, middle, "middle", plot_.y_title, fmt::format(R"~( transform="rotate(-90 20 {:.1f})")~", middle));
  }

  void draw_mark(const Plot::Mark& mark) {
    if (!(mark.x >= x_.low && mark.x <= x_.high)) return;
    line(mark.x, y_.low, mark.x, y_.high, "#666666", "3 3");
    // Along the line, so that marks side by side stay readable.
    const double x = left(mark.x) + 12, y = kHeight - kBottom - 6;
    words(x, y, "start", mark.label, fmt::format(R"~( font-size="11" transform="rotate(-90 {:.1f} {:.1f})")~", x, y));
  }

  void draw_series(const Plot::Series& series, const std::string& stroke) {
    if (series.line) {
      add(R"(<polyline fill="none" stroke="{}" stroke-width="1.5" points=")", stroke);
      for (std::size_t i = 0; i < series.x.size(); ++i)
        if (drawn(series.x[i], series.y[i])) add("{:.1f},{:.1f} ", left(series.x[i]), top(series.y[i]));
      text_ += "\"/>\n";
      return;
    }
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (drawn(series.x[i], series.y[i]))
        add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}" fill-opacity="0.7"/>)"
            "\n",
            left(series.x[i]), top(series.y[i]), stroke);
  }

  void draw_legend() {
    double y = kTop + 14;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      if (plot_.series[i].label.empty()) continue;
      add(R"(<rect x="{:.1f}" y="{:.1f}" width="10" height="10" fill="{}"/>)"
          "\n",
          kLeft + 10, y - 9, colour(i));
      words(kLeft + 26, y, "start", plot_.series[i].label);
      y += kLegendLine;
    }
  }

  const Plot& plot_;
  Range x_, y_;
  std::string text_;
};

}  // namespace

double tick_distance(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0})
    if (rough <= step * power) return step * power;
  return 10 * power;
}

std::string escaped_for_svg(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&') {
      result += "&amp;";
    } else if (letter == '<') {
      result += "&lt;";
    } else if (letter == '>') {
      result += "&gt;";
    } else if (letter == '"') {
      result += "&quot;";
    } else {
      result += static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
    }
  }
  return result;
}

std::string plot_to_svg(const Plot& plot) { return Drawing(plot).draw(); }

}  // namespace doppler
